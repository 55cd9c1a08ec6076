"""PDF files: text in reading order, headings by size and outline, plain tables, page by page."""

import ctypes
import re
from collections.abc import Iterator

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from trapline.extract.files.blocks import Block
from trapline.extract.files.layout import Line, blocks_of, furniture
from trapline.extract.files.reader_result import FileContent, Limits, UnreadableFile
from trapline.extract.metadata.dates import iso_date

_PROPERTIES = {
    "Title": "title",
    "Author": "author",
    "Subject": "description",
    "Keywords": "keywords",
}
_DATES = {"CreationDate": "published", "ModDate": "modified"}
_WORD = re.compile(r"\S+")
_MAX_OUTLINE = 5_000
_GAP = 1.4
"""Words further apart than this many line heights stand in different columns."""
_BROKEN_HYPHENS = str.maketrans({"\ufffe": "\u00ad", "\x02": "\u00ad", "\x00": ""})


def read_pdf(body: bytes, limits: Limits) -> FileContent:
    document = _open(body)
    try:
        total = len(document)
        if total == 0:
            raise UnreadableFile("it has no pages")
        pages = [_lines(document, number) for number in range(min(total, limits.pages))]
        outline = _outline(document)
        properties = _properties(document)
        empty = sum(not lines for lines in pages)
        scanned = empty and any(
            _is_image(document, n) for n, lines in enumerate(pages[:200]) if not lines
        )
    finally:
        document.close()
    return FileContent(
        _layout(pages, outline, limits),
        properties,
        total,
        _warning(total, pages, empty, bool(scanned)),
    )


def _open(body: bytes) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(body)
    except pdfium.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code in (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY):
            raise UnreadableFile("the PDF is encrypted and needs a password") from error
        raise UnreadableFile("the PDF is damaged") from error


def _layout(
    pages: list[list[Line]], outline: dict[int, dict[str, int]], limits: Limits
) -> list[Block]:
    repeated = furniture(pages)
    blocks: list[Block] = []
    left = limits.characters
    for block in blocks_of(pages, outline, repeated):
        left -= len(block.text)
        if left < 0:
            break
        blocks.append(block)
    return blocks


def _warning(total: int, pages: list[list[Line]], empty: int, scanned: bool) -> str | None:
    said = []
    if len(pages) < total:
        said.append(f"Only the first {len(pages)} of {total} pages were read.")
    if empty == len(pages):
        said.append(
            "The PDF has no text layer: its pages are images."
            if scanned
            else "The PDF has no text."
        )
    elif scanned:
        said.append(f"{empty} pages are images without text.")
    return " ".join(said) or None


def _properties(document: pdfium.PdfDocument) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in document.get_metadata_dict(skip_empty=True).items():
        if name in _PROPERTIES:
            found[_PROPERTIES[name]] = " ".join(value.split())
        elif name in _DATES and (day := iso_date(value.removeprefix("D:")[:8])):
            found[_DATES[name]] = day
    return {name: value for name, value in found.items() if value}


def _outline(document: pdfium.PdfDocument) -> dict[int, dict[str, int]]:
    """The level of each heading that the file's own outline names, by page and text."""
    found: dict[int, dict[str, int]] = {}
    for count, mark in enumerate(document.get_toc(max_depth=6)):
        if count == _MAX_OUTLINE:
            break
        target = mark.get_dest()
        index = target.get_index() if target else None
        title = " ".join(mark.get_title().split()).lower()
        if index is not None and title:
            found.setdefault(index, {})[title] = mark.level + 1
    return found


def _is_image(document: pdfium.PdfDocument, number: int) -> bool:
    try:
        return any(document[number].get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE], max_depth=2))
    except pdfium.PdfiumError:
        return False


def _lines(document: pdfium.PdfDocument, number: int) -> list[Line]:
    try:
        page = document[number]
        textpage = page.get_textpage()
    except pdfium.PdfiumError:
        return []
    text = textpage.get_text_range()
    placed = len(text) == textpage.count_chars()
    return list(_placed_lines(textpage, text) if placed else _plain_lines(text))


def _plain_lines(text: str) -> Iterator[Line]:
    """Lines without geometry: for pages whose characters cannot be counted one by one."""
    for line in text.translate(_BROKEN_HYPHENS).splitlines():
        if line.strip():
            yield Line((line.strip(),))


def _placed_lines(textpage: pdfium.PdfTextPage, text: str) -> Iterator[Line]:
    box = _Box(textpage)
    start = 0
    for raw in text.split("\r\n"):
        if raw.strip():
            yield _placed_line(box, raw, start)
        start += len(raw) + 2


def _placed_line(box: "_Box", raw: str, start: int) -> Line:
    words = [
        (match.group(), match.start() + start, match.end() + start - 1)
        for match in _WORD.finditer(raw)
    ]
    # The middle word is least likely to be a footnote mark or a bullet.
    _, middle, _ = words[len(words) // 2]
    _, bottom, _, top = box.of(middle)
    height = max(top - bottom, 1.0)
    cells, starts, right = [words[0][0]], [box.of(words[0][1])[0]], box.of(words[0][2])[2]
    for word, first, last in words[1:]:
        left = box.of(first)[0]
        if left - right > _GAP * height and set(word) != {"."} and set(cells[-1][-1:]) != {"."}:
            cells.append(word)
            starts.append(left)
        else:
            cells[-1] += " " + word
        right = box.of(last)[2]
    weight = pdfium_c.FPDFText_GetFontWeight(box.raw, middle)
    return Line(
        tuple(cell.translate(_BROKEN_HYPHENS) for cell in cells),
        tuple(starts),
        right,
        top,
        round(height * 2) / 2,
        weight >= 600,  # noqa: PLR2004 - CSS's weight for semi-bold
    )


class _Box:
    """The boxes of a page's characters; loose ones, which follow the font's size."""

    def __init__(self, textpage: pdfium.PdfTextPage) -> None:
        self.raw = textpage.raw
        self._rect = pdfium_c.FS_RECTF()
        self._pointer = ctypes.byref(self._rect)

    def of(self, index: int) -> tuple[float, float, float, float]:
        pdfium_c.FPDFText_GetLooseCharBox(self.raw, index, self._pointer)
        rect = self._rect
        return rect.left, rect.bottom, rect.right, rect.top
