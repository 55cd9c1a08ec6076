"""Pages in many encodings, declared in the header, in the document, by a mark, or wrongly."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass

from tests.site.content import table
from tests.site.page import Page
from tests.site.sheet import markup, sheet

BASE = "/world/"
_LETTERS = {entry["name"]: entry for entry in table("letters")}


@dataclass(frozen=True, slots=True)
class _Copy:
    """A letter of `pages/letters.toml`, the encoding of its bytes, and what is said of it where."""

    slug: str
    letter: str
    encoding: str
    header: str | None = None
    meta: str | None = None
    mark: bytes = b""


_COPIES = (
    _Copy("utf-8-header", "signs", "utf-8", header="utf-8"),
    _Copy("utf-8-meta", "french", "utf-8", meta='<meta charset="utf-8">'),
    _Copy("utf-8-bom", "german", "utf-8", mark=codecs.BOM_UTF8),
    _Copy("utf-8-undeclared", "greek", "utf-8"),
    _Copy("utf-16-le-bom", "japanese", "utf-16-le", mark=codecs.BOM_UTF16_LE),
    _Copy("utf-16-be-header", "russian", "utf-16-be", header="utf-16be", mark=codecs.BOM_UTF16_BE),
    _Copy("windows-1252-header", "french", "cp1252", header="windows-1252"),
    _Copy("latin-1-is-windows-1252", "french", "cp1252", header="ISO-8859-1"),
    _Copy(
        "windows-1252-meta",
        "german",
        "cp1252",
        meta='<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">',
    ),
    _Copy("shift-jis-header", "japanese", "shift_jis", header="Shift_JIS"),
    _Copy("shift-jis-meta", "japanese", "shift_jis", meta='<meta charset="shift_jis">'),
    _Copy("euc-jp-header", "japanese", "euc_jp", header="EUC-JP"),
    _Copy("gb18030-header", "chinese", "gb18030", header="gb18030"),
    _Copy("gb2312-is-gb18030", "chinese", "gb18030", meta='<meta charset="gb2312">'),
    _Copy("koi8-r-header", "russian", "koi8_r", header="koi8-r"),
    _Copy("windows-1251-undeclared", "russian", "cp1251"),
    # The header wins over the document, and the mark over both.
    _Copy(
        "header-against-meta", "russian", "utf-8", header="utf-8", meta='<meta charset="koi8-r">'
    ),
    _Copy("mark-against-header", "greek", "utf-8", header="iso-8859-7", mark=codecs.BOM_UTF8),
    # Said to be what it is not, as it happens every day.
    _Copy("mislabelled-utf-8", "french", "cp1252", header="utf-8"),
    _Copy("mislabelled-latin-1", "greek", "utf-8", header="iso-8859-1"),
    _Copy("unknown-charset", "german", "utf-8", header="x-hollin-7"),
)

TRUE_TEXT = {f"{BASE}{copy.slug}/": _LETTERS[copy.letter]["text"] for copy in _COPIES}
"""What a reader who gets the encoding right reads, by target."""


def demo() -> Iterator[Page]:
    targets = [f"{BASE}{copy.slug}/" for copy in _COPIES]
    yield sheet(
        BASE, "Readers abroad", "Letters as they came, byte for byte.", targets, listed=True
    )
    for copy in _COPIES:
        yield _page(copy)


def _page(copy: _Copy) -> Page:
    title, text = _LETTERS[copy.letter]["title"], _LETTERS[copy.letter]["text"]
    charset = f"; charset={copy.header}" if copy.header else ""
    html = markup(title, text, [BASE], head=copy.meta or "")
    page = sheet(f"{BASE}{copy.slug}/", title, text, [BASE], kind="article", listed=True)
    page.body = copy.mark + html.encode(copy.encoding)
    page.content_type = f"text/html{charset}"
    return page
