"""What a body is: decided by its first bytes, then by what its sender calls it."""

import zipfile
from enum import StrEnum
from io import BytesIO


class Kind(StrEnum):
    """The kinds of body that extraction tells apart."""

    HTML = "html"
    PDF = "pdf"
    DOCX = "docx"
    XLSX = "xlsx"
    PPTX = "pptx"
    ODT = "odt"
    ODS = "ods"
    ODP = "odp"
    EPUB = "epub"
    RTF = "rtf"
    LEGACY = "legacy"
    """DOC, XLS, PPT and MSG: compound files of the nineties."""
    CSV = "csv"
    TSV = "tsv"
    JSON = "json"
    XML = "xml"
    MARKDOWN = "markdown"
    TEXT = "text"
    IMAGE = "image"
    EMPTY = "empty"
    UNKNOWN = "unknown"


_OPEN_XML = "application/vnd.openxmlformats-officedocument."
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_BY_TYPE = {
    "text/html": Kind.HTML,
    "application/xhtml+xml": Kind.HTML,
    "application/pdf": Kind.PDF,
    "application/x-pdf": Kind.PDF,
    _OPEN_XML + "wordprocessingml.document": Kind.DOCX,
    _OPEN_XML + "spreadsheetml.sheet": Kind.XLSX,
    _OPEN_XML + "presentationml.presentation": Kind.PPTX,
    _OPEN_DOCUMENT + "text": Kind.ODT,
    _OPEN_DOCUMENT + "spreadsheet": Kind.ODS,
    _OPEN_DOCUMENT + "presentation": Kind.ODP,
    "application/epub+zip": Kind.EPUB,
    "application/rtf": Kind.RTF,
    "text/rtf": Kind.RTF,
    "application/msword": Kind.LEGACY,
    "application/vnd.ms-excel": Kind.LEGACY,
    "application/vnd.ms-powerpoint": Kind.LEGACY,
    "text/csv": Kind.CSV,
    "application/csv": Kind.CSV,
    "text/tab-separated-values": Kind.TSV,
    "application/json": Kind.JSON,
    "text/json": Kind.JSON,
    "application/x-ndjson": Kind.JSON,
    "application/xml": Kind.XML,
    "text/xml": Kind.XML,
    "text/markdown": Kind.MARKDOWN,
    "text/x-markdown": Kind.MARKDOWN,
    "text/plain": Kind.TEXT,
}
_BY_ENDING = {
    "pdf": Kind.PDF,
    "docx": Kind.DOCX,
    "xlsx": Kind.XLSX,
    "pptx": Kind.PPTX,
    "odt": Kind.ODT,
    "ods": Kind.ODS,
    "odp": Kind.ODP,
    "epub": Kind.EPUB,
    "rtf": Kind.RTF,
    "doc": Kind.LEGACY,
    "xls": Kind.LEGACY,
    "ppt": Kind.LEGACY,
    "csv": Kind.CSV,
    "tsv": Kind.TSV,
    "json": Kind.JSON,
    "jsonl": Kind.JSON,
    "ndjson": Kind.JSON,
    "geojson": Kind.JSON,
    "xml": Kind.XML,
    "rss": Kind.XML,
    "atom": Kind.XML,
    "md": Kind.MARKDOWN,
    "markdown": Kind.MARKDOWN,
    "txt": Kind.TEXT,
    "log": Kind.TEXT,
    "html": Kind.HTML,
    "htm": Kind.HTML,
}
_SIGNATURES = (
    (b"%PDF-", Kind.PDF),
    (b"{\\rtf", Kind.RTF),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Kind.LEGACY),
    (b"\x89PNG\r\n\x1a\n", Kind.IMAGE),
    (b"\xff\xd8\xff", Kind.IMAGE),
    (b"GIF87a", Kind.IMAGE),
    (b"GIF89a", Kind.IMAGE),
    (b"BM", Kind.IMAGE),
    (b"II*\x00", Kind.IMAGE),
    (b"MM\x00*", Kind.IMAGE),
)
_HTML_STARTS = (
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<body",
    b"<!doctype",
    b"<script",
    b"<title",
)
_TEXTUAL = (Kind.HTML, Kind.CSV, Kind.TSV, Kind.MARKDOWN, Kind.TEXT, Kind.JSON, Kind.XML)
_LEAD = 1024


def extensions_and_types(kind: Kind) -> tuple[list[str], list[str]]:
    """Return the endings of names and the media types that a kind is known by."""
    endings = [ending for ending, known in _BY_ENDING.items() if known is kind]
    return endings, [media_type for media_type, known in _BY_TYPE.items() if known is kind]


def kind_of(body: bytes, content_type: str | None, url: str) -> Kind:
    """What a body is. Its own signature counts most; a declared type decides between texts."""
    if body.startswith(b"<") and _is_called_html(content_type):
        # What all the rest comes to for nearly every page.
        return Kind.IMAGE if _is_drawing(body) else Kind.HTML
    return _kind_by_look(body, content_type, url)


def _kind_by_look(body: bytes, content_type: str | None, url: str) -> Kind:
    lead = body[:_LEAD].lstrip(b"\xef\xbb\xbf \t\r\n\x00")
    if not lead:
        return Kind.EMPTY if not body.strip(b"\x00 \t\r\n") else Kind.UNKNOWN
    if lead.startswith(b"<") and _is_called_html(content_type):
        return Kind.IMAGE if _is_drawing(lead) else Kind.HTML
    if signed := _by_signature(body, lead):
        return signed
    declared = _declared(content_type, url)
    if declared in _TEXTUAL:
        return _as_marked_up(declared, lead)
    if _is_binary(body[:_LEAD]):
        # A file that claims to be a PDF but does not begin like one is damaged, not unknown.
        return declared or Kind.UNKNOWN
    return _by_look(lead)


def _is_called_html(content_type: str | None) -> bool:
    return content_type is not None and (
        content_type == "text/html" or content_type.startswith("text/html;")
    )


def _by_signature(body: bytes, lead: bytes) -> Kind | None:
    if lead.startswith(b"<"):
        return Kind.IMAGE if _is_drawing(lead) else None
    for signature, kind in _SIGNATURES:
        if lead.startswith(signature):
            # Two letters are a weak signature: a bitmap also gives its own length.
            if signature == b"BM" and int.from_bytes(body[2:6], "little") != len(body):
                continue
            return kind
    if lead[:4] == b"RIFF" and lead[8:12] == b"WEBP":
        return Kind.IMAGE
    if lead.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zipped(body)
    # Some writers put a line or two before the header.
    return Kind.PDF if b"%PDF-" in body[:_LEAD] else None


def _is_drawing(body: bytes) -> bool:
    return body.startswith(b"<svg") or (
        body.startswith(b"<?xml") and body.find(b"<svg", 0, _LEAD) >= 0
    )


def _zipped(body: bytes) -> Kind | None:
    """Which format a zip archive is, by the names in it."""
    try:
        with zipfile.ZipFile(BytesIO(body)) as archive:
            names = set(archive.namelist()[:5_000])
            mimetype = archive.open("mimetype").read(100) if "mimetype" in names else b""
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, RuntimeError, EOFError):
        return None
    for name, kind in (
        ("word/document.xml", Kind.DOCX),
        ("xl/workbook.xml", Kind.XLSX),
        ("ppt/presentation.xml", Kind.PPTX),
        ("META-INF/container.xml", Kind.EPUB),
    ):
        if name in names:
            return kind
    return _BY_TYPE.get(mimetype.decode("ascii", "ignore").strip())


def _declared(content_type: str | None, url: str) -> Kind | None:
    name = (content_type or "").partition(";")[0].strip().lower()
    ending = url.partition("?")[0].partition("#")[0].rpartition("/")[2].rpartition(".")[2].lower()
    by_ending = _BY_ENDING.get(ending)
    if name in ("", "application/octet-stream", "binary/octet-stream", "text/plain"):
        # Servers call most of what they do not know one of these.
        return by_ending or _BY_TYPE.get(name)
    if name.endswith("+json"):
        return Kind.JSON
    if name.endswith("+xml") and name not in _BY_TYPE:
        return Kind.XML if name != "image/svg+xml" else Kind.IMAGE
    return _BY_TYPE.get(name, Kind.IMAGE if name.startswith("image/") else by_ending)


def _as_marked_up(declared: Kind, lead: bytes) -> Kind:
    """HTML is often sent as plain text or XML; a page that says so at its start is one."""
    looks_html = lead[:20].lower().startswith(_HTML_STARTS[:4])
    return Kind.HTML if declared in (Kind.TEXT, Kind.XML) and looks_html else declared


def _is_binary(lead: bytes) -> bool:
    if lead[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return False
    controls = sum(byte < 9 or 13 < byte < 27 for byte in lead)  # noqa: PLR2004 - ASCII controls
    return controls * 20 > len(lead)


def _by_look(lead: bytes) -> Kind:
    start = lead[:200].lower()
    if start.startswith(b"<?xml"):
        return Kind.HTML if b"<html" in lead.lower() else Kind.XML
    if start.startswith(b"<"):
        return Kind.HTML
    if start[:1] in (b"{", b"["):
        return Kind.JSON
    return Kind.HTML if b"</" in lead and b"<" in lead[:_LEAD] else Kind.TEXT
