"""Word files: headings, lists, tables, links and footnotes, in reading order."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from trapline.extract.files.blocks import Block, BlockKind, heading, paragraph, table
from trapline.extract.files.officexml import R, W, core_properties, is_on
from trapline.extract.files.package import ZipPackage
from trapline.extract.files.reader_result import FileContent, Limits
from trapline.extract.files.runs import Runs, Style

_MAIN = "word/document.xml"
_HEADING = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|kop|rubrik)\s*(\d)", re.IGNORECASE
)
_WRAPPERS = {W + name for name in ("sdt", "sdtContent", "ins", "smartTag", "customXml", "moveTo")}
_SKIPPED = {W + name for name in ("del", "moveFrom", "instrText", "delText", "rPr", "pPr")}
_MAX_STYLES = 20


def read_docx(body: bytes, limits: Limits) -> FileContent:
    package = ZipPackage(body, limits)
    return FileContent(list(_Docx(package).blocks()), core_properties(package))


class _Docx:
    def __init__(self, package: ZipPackage) -> None:
        self._body = package.xml(_MAIN).find(W + "body")
        self._links = package.relations(_MAIN)
        self._styles = _by_id(package.optional_xml("word/styles.xml"), "style", "styleId")
        self._lists = _lists(package.optional_xml("word/numbering.xml"))
        self._notes = _by_id(package.optional_xml("word/footnotes.xml"), "footnote", "id")
        self._used_notes: list[str] = []

    def blocks(self) -> Iterator[Block]:
        if self._body is not None:
            yield from self._children(self._body)
        for number, note in enumerate(self._used_notes, 1):
            runs = Runs()
            for part in self._notes[note].iter(W + "p"):
                self._inline(part, runs, "")
                runs.add(" ")
            yield Block(BlockKind.MARKDOWN, runs.text, f"[^{number}]: {runs.markup}")

    def _children(self, parent: ET.Element) -> Iterator[Block]:
        for child in parent:
            if child.tag == W + "p":
                yield from self._paragraph(child)
            elif child.tag == W + "tbl":
                yield from self._table(child)
            elif child.tag in _WRAPPERS:
                yield from self._children(child)

    def _paragraph(self, element: ET.Element) -> Iterator[Block]:
        runs = Runs()
        self._inline(element, runs, "")
        # Text boxes hang in a run but are blocks of their own.
        boxes = list(element.iter(W + "txbxContent"))[:1]
        if runs.text:
            yield self._placed(element, runs)
        for box in boxes:
            yield from self._children(box)

    def _placed(self, element: ET.Element, runs: Runs) -> Block:
        level = self._heading_level(element)
        if level:
            return heading(runs.text, level)
        depth, ordered = self._list_level(element)
        if depth is not None:
            return runs.block(BlockKind.ITEM, depth, ordered=ordered)
        return paragraph(runs.text, runs.markup)

    def _inline(self, element: ET.Element, runs: Runs, href: str) -> None:
        for child in element:
            tag = child.tag
            if tag == W + "r":
                self._run(child, runs, href)
            elif tag == W + "hyperlink":
                self._inline(child, runs, self._links.get(child.get(R + "id", ""), ""))
            elif tag not in _SKIPPED:
                self._inline(child, runs, href)

    def _run(self, run: ET.Element, runs: Runs, href: str) -> None:
        look = run.find(W + "rPr")
        bold = look is not None and is_on(look.find(W + "b"))
        italic = look is not None and is_on(look.find(W + "i"))
        style = Style(bold, italic, href)
        for child in run:
            name = child.tag
            if name == W + "t":
                runs.add(child.text or "", style)
            elif name == W + "tab":
                runs.add("\t", style)
            elif name in (W + "br", W + "cr"):
                runs.add("\n")
            elif name == W + "noBreakHyphen":
                runs.add("-", style)
            elif name == W + "footnoteReference":
                self._note(child.get(W + "id", ""), runs)

    def _note(self, identity: str, runs: Runs) -> None:
        if identity in self._notes:
            self._used_notes.append(identity)
            runs.add(f" ({len(self._used_notes)})")

    def _ancestry(self, element: ET.Element) -> Iterator[ET.Element]:
        """The paragraph's own properties, then those of its style and the styles below that."""
        own = element.find(W + "pPr")
        if own is None:
            return
        yield own
        reference = own.find(W + "pStyle")
        for _ in range(_MAX_STYLES):
            style = (
                self._styles.get(reference.get(W + "val", "")) if reference is not None else None
            )
            if style is None:
                return
            look = style.find(W + "pPr")
            if look is not None:
                yield look
            reference = style.find(W + "basedOn")

    def _heading_level(self, element: ET.Element) -> int:
        reference = element.find(f"{W}pPr/{W}pStyle")
        style = self._styles.get(reference.get(W + "val", "")) if reference is not None else None
        named = style.find(W + "name") if style is not None else None
        name = named.get(W + "val", "") if named is not None else ""
        if name.lower() == "title":
            return 1
        if match := _HEADING.match(name):
            return int(match.group(1))
        for look in self._ancestry(element):
            outline = look.find(W + "outlineLvl")
            if outline is not None and outline.get(W + "val", "9") < "9":
                return int(outline.get(W + "val", "0")) + 1
        return 0

    def _list_level(self, element: ET.Element) -> tuple[int | None, bool]:
        for look in self._ancestry(element):
            numbering = look.find(W + "numPr")
            if numbering is None:
                continue
            identity, level = numbering.find(W + "numId"), numbering.find(W + "ilvl")
            list_id = identity.get(W + "val", "0") if identity is not None else "0"
            if list_id == "0":
                return None, False
            depth = (
                int(level.get(W + "val", "0")) if level is not None else self._style_depth(element)
            )
            kind = self._lists.get(list_id, {}).get(depth, "bullet")
            return min(depth, 8), kind not in ("bullet", "none")
        return None, False

    def _style_depth(self, element: ET.Element) -> int:
        """Built-in list styles say their depth only in their name: `List Bullet 2`."""
        reference = element.find(f"{W}pPr/{W}pStyle")
        name = reference.get(W + "val", "") if reference is not None else ""
        return int(name[-1]) - 1 if name[-1:] in ("2", "3", "4", "5") else 0

    def _table(self, element: ET.Element) -> Iterator[Block]:
        rows = [tuple(self._row(row)) for row in element.findall(W + "tr")]
        if max((len(row) for row in rows), default=0) > 1:
            yield table(rows)
            return
        # A table of one column is a frame around its content.
        for cell in element.iterfind(f"{W}tr/{W}tc"):
            yield from self._children(cell)

    def _row(self, row: ET.Element) -> Iterator[str]:
        for cell in row.iter(W + "tc"):
            look = cell.find(W + "tcPr")
            merge = look.find(W + "vMerge") if look is not None else None
            continued = merge is not None and merge.get(W + "val", "continue") == "continue"
            yield "" if continued else self._cell(cell)
            span = look.find(W + "gridSpan") if look is not None else None
            extra = int(span.get(W + "val", "1")) - 1 if span is not None else 0
            yield from [""] * min(extra, 100)

    def _cell(self, cell: ET.Element) -> str:
        parts = []
        for element in cell.iter(W + "p"):
            runs = Runs()
            self._inline(element, runs, "")
            parts.append(runs.text)
        return " ".join(part for part in parts if part)


def _by_id(root: ET.Element | None, name: str, key: str) -> dict[str, ET.Element]:
    found = root.iter(W + name) if root is not None else ()
    return {element.get(W + key, ""): element for element in found}


def _lists(root: ET.Element | None) -> dict[str, dict[int, str]]:
    """The number format of each level of each list."""
    if root is None:
        return {}
    shapes: dict[str, dict[int, str]] = {}
    for shape in root.iter(W + "abstractNum"):
        levels: dict[int, str] = {}
        for level in shape.iter(W + "lvl"):
            form = level.find(W + "numFmt")
            if form is not None:
                levels[int(level.get(W + "ilvl", "0"))] = form.get(W + "val", "bullet")
        shapes[shape.get(W + "abstractNumId", "")] = levels
    found: dict[str, dict[int, str]] = {}
    for number in root.iter(W + "num"):
        reference = number.find(W + "abstractNumId")
        if reference is not None:
            found[number.get(W + "numId", "")] = shapes.get(reference.get(W + "val", ""), {})
    return found
