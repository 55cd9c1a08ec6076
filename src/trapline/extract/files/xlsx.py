"""Excel files: every visible sheet as a table, with dates as dates."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import BytesIO
from xml.etree import ElementTree as ET

from trapline.extract.files.blocks import Block, heading
from trapline.extract.files.grid import Grid
from trapline.extract.files.officexml import R, S, core_properties
from trapline.extract.files.package import ZipPackage, parse_xml
from trapline.extract.files.reader_result import FileContent, Limits, UnreadableFile

_BOOK = "xl/workbook.xml"
_BUILT_IN_DATES = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
_LITERALS = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_DATE_LETTERS = re.compile(r"[ymdhs]", re.IGNORECASE)
_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_LAST_DAY = 2_958_465
_SECONDS = 86_400


def read_xlsx(body: bytes, limits: Limits) -> FileContent:
    package = ZipPackage(body, limits)
    book = _Book(package)
    blocks: list[Block] = []
    grid = Grid(limits)
    for name, part in book.sheets():
        grid.start()
        for row, column, text in book.cells(part):
            if not grid.put(row, column, text):
                break
        blocks += [heading(name, 2), grid.table()] if not grid.is_empty else []
    return FileContent(blocks, core_properties(package), warning=grid.warning)


class _Book:
    def __init__(self, package: ZipPackage) -> None:
        self._package = package
        self._root = package.xml(_BOOK)
        self._parts = package.relations(_BOOK)
        self._strings = _strings(package)
        self._dated = _date_styles(package.optional_xml("xl/styles.xml"))
        look = self._root.find(S + "workbookPr")
        is_1904 = look is not None and look.get("date1904") in ("1", "true")
        self._epoch = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30)  # noqa: DTZ001 - sheets have no zone

    def sheets(self) -> Iterator[tuple[str, str]]:
        for sheet in self._root.iter(S + "sheet"):
            part = self._parts.get(sheet.get(R + "id", ""), "")
            if sheet.get("state", "visible") == "visible" and part in self._package:
                yield sheet.get("name", ""), part

    def cells(self, part: str) -> Iterator[tuple[int, int, str]]:
        """Each cell that has a text: its row, its column, its text."""
        content = self._package.read(part)
        if b"<!ENTITY" in content:
            raise UnreadableFile("the XML declares entities")
        number = 0
        try:
            # Entities are refused above; a sheet is read row by row, for it can be very long.
            for _, row in ET.iterparse(BytesIO(content)):  # noqa: S314
                if row.tag != S + "row":
                    continue
                number = _whole(row.get("r"), number + 1)
                for place, cell in enumerate(row.iter(S + "c")):
                    if text := self._text(cell):
                        yield number, _column(cell.get("r"), place), text
                row.clear()
        except ET.ParseError as error:
            raise UnreadableFile(f"the XML is damaged: {error}") from error

    def _text(self, cell: ET.Element) -> str:
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return "".join(part.text or "" for part in cell.iter(S + "t"))
        value = cell.find(S + "v")
        text = (value.text or "") if value is not None else ""
        if kind == "s":
            index = _whole(text, -1)
            return self._strings[index] if 0 <= index < len(self._strings) else ""
        if kind == "b":
            return "TRUE" if text == "1" else "FALSE"
        if kind == "n" and text and _whole(cell.get("s"), 0) in self._dated:
            return self._date(text)
        return _number(text) if kind == "n" else text

    def _date(self, text: str) -> str:
        try:
            days = float(text)
        except ValueError:
            return text
        if not 0 <= days <= _LAST_DAY:
            return text
        moment = self._epoch + timedelta(seconds=round(days * _SECONDS))
        if days < 1:
            return moment.strftime("%H:%M:%S")
        is_day = moment.hour == moment.minute == moment.second == 0
        return moment.strftime("%Y-%m-%d" if is_day else "%Y-%m-%d %H:%M:%S")


def _whole(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else otherwise  # noqa: PLR2004 - digits


def _column(reference: str | None, otherwise: int) -> int:
    match = _CELL.fullmatch(reference or "")
    if match is None:
        return otherwise
    number = 0
    for letter in match.group(1):
        number = number * 26 + ord(letter) - 64
    return number - 1


def _number(text: str) -> str:
    """A number as people write it: 0.30000000000000004 is 0.3."""
    if not text or text.isdecimal():
        return text
    try:
        return format(float(text), ".15g")
    except ValueError:
        return text


def _strings(package: ZipPackage) -> list[str]:
    name = "xl/sharedStrings.xml"
    if name not in package:
        return []
    found = []
    for entry in parse_xml(package.read(name)).iter(S + "si"):
        # Phonetic hints (rPh) are no part of the text.
        parts = [*entry.findall(S + "t"), *entry.findall(f"{S}r/{S}t")]
        found.append("".join(part.text or "" for part in parts))
    return found


def _date_styles(root: ET.Element | None) -> set[int]:
    """The cell styles that show a number as a date or a time."""
    if root is None:
        return set()
    dated = set(_BUILT_IN_DATES)
    for form in root.iter(S + "numFmt"):
        code = _LITERALS.sub("", form.get("formatCode", "")).partition(";")[0]
        if _DATE_LETTERS.search(code) and "general" not in code.lower():
            dated.add(_whole(form.get("numFmtId"), -1))
    styles = root.find(S + "cellXfs")
    looks = enumerate(styles) if styles is not None else ()
    return {index for index, look in looks if _whole(look.get("numFmtId"), 0) in dated}
