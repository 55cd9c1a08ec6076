"""Bare pages without a frame, for behaviours where the content does not matter."""

from collections.abc import Sequence
from html import escape
from typing import Any

from tests.site.page import Link, Page


def sheet(
    target: str,
    title: str,
    text: str = "",
    links: Sequence[str] = (),
    *,
    head: str = "",
    **fields: Any,
) -> Page:
    """Return a page with a heading, a paragraph and a list of links."""
    text = text or f"This is the page {title!r} of the test site."
    return Page(
        target=target,
        body=markup(title, text, links, head=head).encode(),
        links=tuple(Link(href, href) for href in links),
        title=title,
        main_text=f"{title}\n{text}",
        **fields,
    )


def markup(title: str, text: str, links: Sequence[str] = (), *, head: str = "") -> str:
    items = "".join(f'<li><a href="{escape(href)}">{escape(href)}</a></li>' for href in links)
    return (
        f'<!doctype html>\n<html lang="en"><head><title>{escape(title)}</title>{head}</head>\n'
        f"<body><main><h1>{escape(title)}</h1><p>{escape(text)}</p></main>"
        f"<ul>{items}</ul></body></html>\n"
    )
