"""Documents and pictures to download: right ones, mislabelled ones, and ones that hurt."""

import json
from collections.abc import Callable, Iterator
from functools import cache

from tests.site import images, office
from tests.site.compose import compose
from tests.site.message import Headers, Request, Response
from tests.site.page import Page
from tests.site.pdf import pdf, scanned_pdf
from tests.site.prose import markdown
from tests.site.sheet import markup, sheet
from tests.site.state import State

BASE = "/hostile/files/"
PASSWORD = "stile"

TITLE = "Price list of the repair bench"
LINES = (
    "Cleaning and oil: 25 euros, three days.",
    "New glass: 30 euros, five days.",
    "A pivot with a new bushing: 45 euros, eight days.",
)
TEXT = "\n".join((TITLE, *LINES))
"""What every document of a good kind says."""
_ROWS = (("Work", "Euros", "Days"), ("Cleaning", "25", "3"), ("Glass", "30", "5"))
_CSV = "work,euros,days\ncleaning,25,3\nglass,30,5\npivot,45,8\n"
_MANY_PAGES = 1000
_BOMB_BYTES = 200_000_000


def demo() -> Iterator[Page]:
    """Yield the two documents of the well-behaved part, and some pictures for its pages."""
    yield compose(
        "plain",
        "/downloads/",
        kind="listing",
        title="Downloads",
        text=markdown(
            "- [Price list](/downloads/price-list.pdf) (PDF)\n"
            "- [Form for repairs](/downloads/repair-form.docx) (Word)\n"
        ),
        groups=(),
    )
    yield _file("/downloads/price-list.pdf", pdf([(TITLE, *LINES)], TITLE), "application/pdf")
    yield _file(
        "/downloads/repair-form.docx", office.docx(TITLE, LINES, _ROWS), office.TYPES["docx"]
    )
    for name, body, kind in (
        ("icon.png", images.png(16, 16), "image/png"),
        ("card.png", images.png(), "image/png"),
        ("site.css", b"body{font:16px serif;max-width:70rem}.skip-link{left:-99rem}", "text/css"),
        ("site.js", b"document.documentElement.className='js'", "text/javascript"),
    ):
        cached = (("Cache-Control", "public, max-age=604800, immutable"),)
        yield Page(target=f"/assets/{name}", body=body, content_type=kind, headers=cached)


def pages() -> Iterator[Page]:
    """Yield one file of every kind, then the wrong and the harmful ones."""
    made = [*_good(), *_mislabelled(), *_harmful()]
    yield sheet(BASE, "Files", "One of every kind.", [page.target for page in made])
    yield from made


def _good() -> Iterator[Page]:
    chapters = [(TITLE, line) for line in LINES]
    documents = {
        "docx": office.docx(TITLE, LINES, _ROWS),
        "xlsx": office.xlsx({"Prices": _ROWS, "Hours": (("open", 9.0), ("closed", 17.0))}),
        "pptx": office.pptx(chapters),
        "odt": office.odt(TITLE, LINES),
        "epub": office.epub(TITLE, chapters),
        "rtf": office.rtf(TITLE, LINES),
    }
    for name, body in documents.items():
        yield _file(f"{BASE}good.{name}", body, office.TYPES[name])
    pictures = {name: getattr(images, name)() for name in images.TYPES}
    for name, body in pictures.items():
        yield _file(f"{BASE}good.{name}", body, images.TYPES[name])
    texts = {
        "pdf": (pdf([(TITLE, *LINES), ("Page two", "The end.")], TITLE), "application/pdf"),
        "csv": (_CSV.encode(), "text/csv"),
        "json": (json.dumps({"title": TITLE, "lines": LINES}).encode(), "application/json"),
        "xml": (f"<?xml version='1.0'?><list><title>{TITLE}</title></list>".encode(), "text/xml"),
        "txt": (TEXT.encode(), "text/plain; charset=utf-8"),
        "md": (f"# {TITLE}\n\n- {LINES[0]}\n".encode(), "text/markdown"),
        "zip": (office.packed({"readme.txt": TEXT}), "application/zip"),
        "bin": (bytes(range(256)) * 16, "application/octet-stream"),
    }
    for name, (body, kind) in texts.items():
        yield _file(f"{BASE}good.{name}", body, kind)


def _mislabelled() -> Iterator[Page]:
    html = markup("A page in disguise", "This is HTML, whatever the header says.").encode()
    document = pdf([(TITLE, *LINES)])
    yield _file(f"{BASE}html-as-pdf.pdf", html, "application/pdf")
    yield _file(f"{BASE}html-as-text.txt", html, "text/plain")
    yield _file(f"{BASE}html-as-binary", html, "application/octet-stream")
    yield _file(f"{BASE}html-without-type", html, None)
    yield _file(f"{BASE}pdf-as-html", document, "text/html; charset=utf-8")
    yield _file(f"{BASE}pdf-as-binary", document, "application/octet-stream")
    yield _file(f"{BASE}docx-as-zip", office.docx(TITLE, LINES), "application/zip")
    yield _file(f"{BASE}png-as-jpeg.jpg", images.png(), "image/jpeg")
    yield _file(f"{BASE}nonsense-type", html, "text/html/please; charset")
    named: Headers = (("Content-Disposition", 'attachment; filename="price list.pdf"'),)
    yield _file(f"{BASE}attachment", document, "application/octet-stream", named)


def _harmful() -> Iterator[Page]:
    document, word = pdf([(TITLE, *LINES)]), office.docx(TITLE, LINES)
    yield _file(f"{BASE}empty.pdf", b"", "application/pdf")
    yield _file(f"{BASE}cut.pdf", document[: len(document) // 2], "application/pdf")
    yield _file(f"{BASE}cut.docx", word[: len(word) // 2], office.TYPES["docx"])
    yield _file(f"{BASE}locked.pdf", pdf([(TITLE, *LINES)], password=PASSWORD), "application/pdf")
    yield _file(f"{BASE}scanned.pdf", scanned_pdf(3), "application/pdf")
    yield _made(f"{BASE}thousand-pages.pdf", _thousand_pages, "application/pdf")
    yield _made(f"{BASE}bomb.docx", _word_bomb, office.TYPES["docx"])


@cache
def _thousand_pages() -> bytes:
    return pdf([(f"Page {number}", *LINES) for number in range(1, _MANY_PAGES + 1)])


@cache
def _word_bomb() -> bytes:
    """Two hundred megabytes of document in a file of two hundred kilobytes."""
    return office.word_package(" " * _BOMB_BYTES)


def _file(target: str, body: bytes, content_type: str | None, headers: Headers = ()) -> Page:
    return Page(
        target=target,
        body=body,
        content_type=content_type,
        headers=headers,
        kind="document",
        title=target.rpartition("/")[2],
    )


def _made(target: str, make: Callable[[], bytes], content_type: str) -> Page:
    """Return a file that is made when it is first asked for, because that takes a while."""

    def respond(_request: Request, _state: State) -> Response:
        return Response(body=make(), content_type=content_type)

    return Page(target=target, respond=respond, kind="document", content_type=content_type)
