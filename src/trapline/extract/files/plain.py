"""Text formats: CSV, JSON, XML, Markdown and plain text."""

import csv
import json
import re
from io import StringIO

import msgspec
from turbohtml.detect import detect

from trapline.extract.files.blocks import Block, BlockKind, heading, paragraph
from trapline.extract.files.grid import Grid
from trapline.extract.files.kinds import Kind
from trapline.extract.files.package import local_name, parse_xml
from trapline.extract.files.reader_result import FileContent, Limits, UnreadableFile

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_SAMPLE = 8_192
_MAX_FIELD = 1_000_000
_TITLE = re.compile(r"^#\s+(.+?)\s*#*$", re.MULTILINE)


def decode_text(body: bytes, content_type: str | None) -> str:
    """A text by its byte-order mark, its declared charset or, failing these, its looks."""
    declared = _CHARSET.search(content_type or "")
    names = ["utf-8-sig"]
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        names = ["utf-16"]
    elif declared:
        names.append(declared.group(1))
    names.append(detect(body[:100_000]).encoding or "windows-1252")
    for name in names:
        try:
            return body.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return body.decode("cp1252", "replace")


def read_plain(body: bytes, kind: Kind, content_type: str | None, limits: Limits) -> FileContent:
    """Any of the text formats."""
    text = decode_text(body, content_type).replace("\x00", "")
    cut = len(text) > limits.characters
    text = text[: limits.characters]
    if kind in (Kind.CSV, Kind.TSV):
        content = _csv(text, "\t" if kind is Kind.TSV else None, limits)
    elif kind is Kind.JSON:
        content = _json(text)
    elif kind is Kind.XML:
        content = _xml(body)
    elif kind is Kind.MARKDOWN:
        title = _TITLE.search(text[:_SAMPLE])
        properties = {"title": title.group(1)} if title else {}
        content = FileContent([Block(BlockKind.MARKDOWN, text.strip(), text)], properties)
    else:
        content = FileContent(
            [paragraph(part) for part in re.split(r"\r?\n[ \t]*\r?\n", text) if part.strip()]
        )
    said = "The text is longer than the limit; the rest was left out." if cut else None
    return FileContent(content.blocks, content.properties, warning=content.warning or said)


def _csv(text: str, delimiter: str | None, limits: Limits) -> FileContent:
    mark = delimiter or _delimiter(text[:_SAMPLE])
    grid = Grid(limits)
    csv.field_size_limit(_MAX_FIELD)
    try:
        for number, row in enumerate(csv.reader(StringIO(text), delimiter=mark)):
            if not all(grid.put(number, place, cell) for place, cell in enumerate(row)):
                break
    except csv.Error as error:
        raise UnreadableFile(f"the CSV is damaged: {error}") from error
    return FileContent([] if grid.is_empty else [grid.table()], warning=grid.warning)


def _delimiter(sample: str) -> str:
    try:
        return csv.Sniffer().sniff(sample, ",;\t|").delimiter
    except csv.Error:
        return max(",;\t|", key=sample.count)


def _json(text: str) -> FileContent:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        # JSON lines, and JSON that is not quite: shown as they are.
        return FileContent([Block(BlockKind.CODE, text, language="json")])
    pretty = json.dumps(value, indent=2, ensure_ascii=False)
    return FileContent([Block(BlockKind.CODE, pretty, language="json")])


def _xml(body: bytes) -> FileContent:
    root = parse_xml(body)
    title = next((e.text for e in root.iter() if local_name(e) == "title" and e.text), None)
    blocks = [heading(title)] if title else []
    for element in root.iter():
        content = " ".join((element.text or "").split())
        if content and content != title:
            blocks.append(paragraph(content))
        if tail := " ".join((element.tail or "").split()):
            blocks.append(paragraph(tail))
    return FileContent(blocks, {"title": title.strip()} if title else {})
