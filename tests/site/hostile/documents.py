"""HTML that hurts parsers: deep, wide, broken, empty, or not what it seems."""

from collections.abc import Callable, Iterator
from functools import cache

from tests.site.message import Request, Response
from tests.site.page import Page
from tests.site.sheet import sheet
from tests.site.state import State

BASE = "/hostile/html/"
NEEDLE = "The needle is here."
"""Stands once in every document that has a text at all."""


def pages() -> Iterator[Page]:
    for name, make in _LARGE.items():
        yield _made(BASE + name, make)
    for name, text in _SMALL.items():
        yield Page(target=BASE + name, body=text.encode(), kind="page")
    yield Page(target=f"{BASE}nul", body=f"<p>{NEEDLE}\0\0<b>\0</b>".encode())
    yield Page(target=f"{BASE}bad-bytes", body=b"<p>\xff\xfe\xc3(" + NEEDLE.encode() + b"\x80")
    yield Page(target=f"{BASE}empty", body=b"")
    yield Page(target=f"{BASE}spaces", body=b" \n\t " * 1000)
    yield from _based()


def _based() -> Iterator[Page]:
    yield sheet(
        f"{BASE}base", "With a base", links=["leaf"], head='<base href="/hostile/html/tree/">'
    )
    yield sheet(f"{BASE}tree/leaf", "Leaf")


_SMALL = {
    "unclosed": f"<div><p>{NEEDLE}<table><tr><td>one<td>two<b><i>mis</b>nested</i><ul><li>a<li>b",
    "no-body": f"<title>No body</title>{NEEDLE}",
    "two-bodies": f"<html><body><p>one</p></body></html><html><body><p>{NEEDLE}</p></body></html>",
    "frames": '<frameset cols="20%,80%"><frame src="/journal/"><frame src="/manual/"></frameset>'
    f"<noframes><body>{NEEDLE}</body></noframes>",
    "iframe-srcdoc": f'<p>{NEEDLE}</p><iframe srcdoc="<p>Inside &lt;b&gt;the frame&lt;/b&gt;</p>">'
    "</iframe>",
    "template": f"<p>{NEEDLE}</p><template><p>Not on the page</p><a href='/nowhere'>x</a></template>",
    "svg": f'<p>{NEEDLE}</p><svg><a href="/nowhere"><text>in the picture</text></a><p>out again</p>',
    "math": f"<p>{NEEDLE}</p><math><mi>x</mi><mo>=</mo><mn>1</mn><p>out again</p>",
    "comment": f"<p>{NEEDLE}</p><!-- <a href='/nowhere'>not a link</a> -- > still a comment",
    "script": f"<p>{NEEDLE}</p><script>document.write('<a href=\"/nowhere\">no</a>')</script>",
    "plaintext": f"<p>{NEEDLE}</p><plaintext></plaintext><a href='/nowhere'>words, not a link</a>",
    "amp": '<!doctype html><html ⚡><head><link rel="canonical" href="/hostile/html/unclosed">'
    f"<style amp-boilerplate>body{{visibility:hidden}}</style></head><body>{NEEDLE}</body></html>",
    "xhtml": '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body>'
    f"<p>{NEEDLE}</p><br/><![CDATA[ and <b>this</b> ]]></body></html>",
    "layout-tables": "<table><tr><td><table><tr><td><table><tr><td>"
    f"{NEEDLE}</td></tr></table></td></tr></table></td></tr></table>",
}


def _nested(opening: str, depth: int, closing: str = "") -> Callable[[], bytes]:
    def make() -> bytes:
        return (opening * depth + NEEDLE + closing * depth).encode()

    return make


def _base64_image() -> bytes:
    return f'<p>{NEEDLE}<img src="data:image/png;base64,{"A" * 2_000_000}">'.encode()


def _many_links() -> bytes:
    return "".join(f'<a href="/hostile/html/link/{n}">{n}</a>\n' for n in range(100_000)).encode()


def _many_attributes() -> bytes:
    return f"<p {' '.join(f'a{n}=1' for n in range(100_000))}>{NEEDLE}".encode()


def _wide() -> bytes:
    return (f"<p>{NEEDLE}" + "<p>word" * 500_000).encode()


def _long_word() -> bytes:
    return (f"<p>{NEEDLE} " + "a" * 5_000_000).encode()


def _fifty_megabytes() -> bytes:
    paragraph = "<p>" + "A sentence like any other, only more often. " * 20 + "</p>\n"
    return (
        f"<title>Fifty</title><p>{NEEDLE}</p>" + paragraph * (50_000_000 // len(paragraph))
    ).encode()


_LARGE: dict[str, Callable[[], bytes]] = {
    "deep": _nested("<div>", 10_000, "</div>"),
    "deep-inline": _nested("<b>", 10_000, "</b>"),
    "deep-tables": _nested("<table><tr><td>", 5_000),
    "deep-lists": _nested("<ul><li>", 10_000),
    "deep-quotes": _nested("<blockquote>", 10_000, "</blockquote>"),
    "many-links": _many_links,
    "many-attributes": _many_attributes,
    "wide": _wide,
    "long-word": _long_word,
    "fifty-megabytes": _fifty_megabytes,
    "base64-image": _base64_image,
}


def _made(target: str, make: Callable[[], bytes]) -> Page:
    """Return a page that is built when it is first asked for."""
    made = cache(make)

    def respond(_request: Request, _state: State) -> Response:
        return Response(body=made())

    return Page(target=target, respond=respond)
