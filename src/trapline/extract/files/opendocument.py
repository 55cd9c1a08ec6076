"""OpenDocument files: texts (ODT), sheets (ODS) and presentations (ODP)."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from trapline.extract.files.blocks import Block, BlockKind, heading, page, paragraph
from trapline.extract.files.grid import Grid
from trapline.extract.files.officexml import dublin_core
from trapline.extract.files.package import ZipPackage, local_name
from trapline.extract.files.reader_result import FileContent, Limits, UnreadableFile
from trapline.extract.files.runs import PLAIN, Runs, Style

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_FO = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_ENCRYPTION = b"encryption-data"
_MAX_REPEAT = 100
_SKIPPED = {
    _TEXT + "note",
    _OFFICE + "annotation",
    _TEXT + "tracked-changes",
    _TEXT + "sequence-decls",
}


def read_opendocument(body: bytes, limits: Limits) -> FileContent:
    package = ZipPackage(body, limits)
    manifest = "META-INF/manifest.xml"
    if manifest in package and _ENCRYPTION in package.read(manifest):
        raise UnreadableFile("the file is encrypted")
    root = package.xml("content.xml")
    meta = package.optional_xml("meta.xml")
    main = root.find(_OFFICE + "body")
    reader = _Reader(root, limits)
    blocks = [block for part in (main if main is not None else ()) for block in reader.blocks(part)]
    return FileContent(
        blocks, dublin_core(meta) if meta is not None else {}, reader.pages, reader.warning
    )


class _Reader:
    def __init__(self, root: ET.Element, limits: Limits) -> None:
        self._looks = dict(_looks(root))
        self._ordered = _ordered_lists(root)
        self._grid = Grid(limits)
        self.pages: int | None = None

    @property
    def warning(self) -> str | None:
        return self._grid.warning

    def blocks(self, parent: ET.Element) -> Iterator[Block]:
        is_sheet = local_name(parent) == "spreadsheet"
        for child in parent:
            name = child.tag
            if name == _TEXT + "h":
                level = child.get(_TEXT + "outline-level", "1")
                yield heading(self._runs(child).text, int(level) if level.isdecimal() else 1)
            elif name == _TEXT + "p":
                yield from self._paragraph(child)
            elif name == _TEXT + "list":
                yield from self._list(child, 0, ordered=False)
            elif name == _TABLE + "table":
                yield from self._table(child, titled=is_sheet)
            elif name == _DRAW + "page":
                self.pages = (self.pages or 0) + 1
                yield page(self.pages)
                yield from self.blocks(child)
            elif name not in _SKIPPED:
                yield from self.blocks(child)

    def _paragraph(self, element: ET.Element) -> Iterator[Block]:
        runs = self._runs(element)
        if runs.text:
            yield paragraph(runs.text, runs.markup)
        for box in element.iter(_DRAW + "text-box"):
            yield from self.blocks(box)

    def _list(self, element: ET.Element, depth: int, *, ordered: bool) -> Iterator[Block]:
        style = element.get(_TEXT + "style-name")
        ordered = style in self._ordered if style else ordered
        for item in element:
            for child in item:
                if child.tag == _TEXT + "list":
                    yield from self._list(child, min(depth + 1, 8), ordered=ordered)
                elif child.tag in (_TEXT + "p", _TEXT + "h"):
                    yield self._runs(child).block(BlockKind.ITEM, depth, ordered=ordered)

    def _table(self, element: ET.Element, *, titled: bool) -> Iterator[Block]:
        self._grid.start()
        for number, row in enumerate(element.iter(_TABLE + "table-row")):
            if not self._row(number, row):
                break
        if self._grid.is_empty:
            return
        if titled:
            yield heading(element.get(_TABLE + "name", ""), 2)
        yield self._grid.table()

    def _row(self, number: int, row: ET.Element) -> bool:
        column = 0
        for cell in row:
            repeat = cell.get(_TABLE + "number-columns-repeated", "1")
            times = min(int(repeat), _MAX_REPEAT) if repeat.isdecimal() else 1
            text = "\n".join(self._runs(part).text for part in cell.iter(_TEXT + "p")).strip()
            for _ in range(times if text else 0):
                if not self._grid.put(number, column, text):
                    return False
                column += 1
            column += 0 if text else times
        return True

    def _runs(self, element: ET.Element) -> Runs:
        runs = Runs()
        self._inline(element, runs, PLAIN)
        return runs

    def _inline(self, element: ET.Element, runs: Runs, style: Style) -> None:
        runs.add(element.text or "", style)
        for child in element:
            name = child.tag
            if name == _TEXT + "s":
                count = child.get(_TEXT + "c", "1")
                runs.add(" " * (min(int(count), _MAX_REPEAT) if count.isdecimal() else 1), style)
            elif name == _TEXT + "tab":
                runs.add("\t", style)
            elif name == _TEXT + "line-break":
                runs.add("\n")
            elif name == _TEXT + "a":
                self._inline(child, runs, Style(style.bold, style.italic, child.get(_HREF, "")))
            elif name == _TEXT + "span":
                look = self._looks.get(child.get(_TEXT + "style-name", ""), PLAIN)
                made = Style(style.bold or look.bold, style.italic or look.italic, style.href)
                self._inline(child, runs, made)
            elif name not in _SKIPPED and not name.startswith(_DRAW):
                self._inline(child, runs, style)
            runs.add(child.tail or "", style)


def _looks(root: ET.Element) -> Iterator[tuple[str, Style]]:
    for style in root.iter(_STYLE + "style"):
        look = style.find(_STYLE + "text-properties")
        if look is not None:
            bold = look.get(_FO + "font-weight") == "bold"
            yield (
                style.get(_STYLE + "name", ""),
                Style(bold, look.get(_FO + "font-style") == "italic"),
            )


def _ordered_lists(root: ET.Element) -> set[str]:
    return {
        style.get(_STYLE + "name", "")
        for style in root.iter(_TEXT + "list-style")
        if style.find(_TEXT + "list-level-style-number") is not None
    }
