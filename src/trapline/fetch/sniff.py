"""MIME sniffing by the WHATWG's standard.

`sniff` reads the bytes alone; `media_type` weighs its result against the Content-Type header. It
also knows the formats of documents, which the standard leaves to other programs.
"""

import re

_HTML = "text/html"
_XML = "text/xml"
_PLAIN = "text/plain"
_BINARY = "application/octet-stream"
_ZIP = "application/zip"

_HEAD = 1445
"""The standard's resource header: no decision needs more bytes than these."""
_SPACE = b"\t\n\x0c\r "
_TAG_ENDS = frozenset(b" >\t\n\x0c\r/")
_HTML_TAGS = (
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<script",
    b"<iframe",
    b"<h1",
    b"<div",
    b"<font",
    b"<table",
    b"<a",
    b"<style",
    b"<title",
    b"<b",
    b"<body",
    b"<br",
    b"<p",
    b"<main",
    b"<article",
    b"<meta",
    b"<link",
)
_LONGEST_TAG = max(map(len, _HTML_TAGS)) + 1
_BINARY_BYTES = bytes([*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xfe\xff", b"\xff\xfe")
_XML_ROOTS = {
    b"<html": "application/xhtml+xml",
    b"<rss": "application/rss+xml",
    b"<feed": "application/atom+xml",
    b"<rdf:rdf": "application/rdf+xml",
    b"<svg": "image/svg+xml",
}
_XML_ROOT = re.compile(b"|".join(_XML_ROOTS), re.IGNORECASE)

_PREFIXES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"\x00\x00\x00\x0cjXL \r\n\x87\n", "image/jxl"),
    (b"\xff\x0a", "image/jxl"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh91AY&SY", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/x-rar-compressed"),
    (b"OggS\x00", "application/ogg"),
    (b"ID3\x02", "audio/mpeg"),
    (b"ID3\x03", "audio/mpeg"),
    (b"ID3\x04", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO\x00", "font/otf"),
    (b"\x00\x01\x00\x00", "font/ttf"),
    (b"\x00asm", "application/wasm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"\x7fELF", _BINARY),
    (b"MZ\x90\x00", _BINARY),
)
_FIRST_BYTES = frozenset(prefix[0] for prefix, _ in _PREFIXES)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wave", b"AVI ": "video/avi"}
_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"M4A ": "audio/mp4",
    b"qt  ": "video/quicktime",
}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OOXML = "application/vnd.openxmlformats-officedocument."
# Names of members, in the order in which they decide.
_ZIP_MEMBERS: tuple[tuple[bytes, str], ...] = (
    (b"word/document.xml", _OOXML + "wordprocessingml.document"),
    (b"xl/workbook.xml", _OOXML + "spreadsheetml.sheet"),
    (b"ppt/presentation.xml", _OOXML + "presentationml.presentation"),
    (b"META-INF/MANIFEST.MF", "application/java-archive"),
    (b"AndroidManifest.xml", "application/vnd.android.package-archive"),
)
# Names of streams, in UTF-16 as the directory of the file spells them.
_OLE_STREAMS: tuple[tuple[bytes, str], ...] = tuple(
    (name.encode("utf-16-le"), kind)
    for name, kind in (
        ("WordDocument", "application/msword"),
        ("Workbook", "application/vnd.ms-excel"),
        ("PowerPoint Document", "application/vnd.ms-powerpoint"),
        ("__properties_version1.0", "application/vnd.ms-outlook"),
    )
)
_DIRECTORY = 2**17
"""How far from either end of an archive the names of its members are looked for."""

_UNKNOWN = frozenset({"unknown/unknown", "application/unknown", "*/*"})
_SIGNED = frozenset(kind for _, kind in (*_PREFIXES, *_ZIP_MEMBERS, *_OLE_STREAMS)) - {_BINARY}
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
# The types that servers give to unknown bytes.
_VAGUE = frozenset({_PLAIN, _BINARY, "binary/octet-stream", "application/x-download"})
_ARCHIVES = frozenset({_ZIP, "application/x-zip-compressed"})


def media_type(declared: str | None, sniffed: str) -> str:
    """The media type to treat a body as: lower-case type/subtype, without parameters."""
    said = essence(declared)
    if said is None or said in _UNKNOWN:
        return sniffed
    if said in _VAGUE:
        return _from_vague(said, sniffed)
    if said in _ARCHIVES and sniffed.startswith(("application/vnd.", "application/epub")):
        return sniffed
    if said == _HTML:
        return _from_page(sniffed)
    return _from_file(said, sniffed)


def essence(content_type: str | None) -> str | None:
    """Return the type/subtype of a Content-Type header, or None if it has none."""
    if not content_type:
        return None
    found = content_type.partition(";")[0].strip().lower()
    kind, slash, subtype = found.partition("/")
    whole = bool(kind and slash and subtype) and "/" not in subtype and " " not in found
    return found if whole else None


def sniff(body: bytes) -> str:
    """The media type of bytes; at least text/plain or application/octet-stream."""
    head = _without_bom(body[:_HEAD])
    text = head.lstrip(_SPACE)
    if text[:1] == b"<":
        return _markup(text)
    if head and head[0] in _FIRST_BYTES:
        for prefix, kind in _PREFIXES:
            if head.startswith(prefix):
                return kind
    return _container(head, body) or _text(head)


def _from_vague(said: str, sniffed: str) -> str:
    if said == _PLAIN:
        # Declared text stays text, even if it looks like markup. Bytes that cannot be text do not.
        return said if sniffed.startswith("text/") else sniffed
    return said if sniffed == _PLAIN else sniffed


def _from_page(sniffed: str) -> str:
    """Feeds and files behind a script are often announced as pages."""
    if sniffed in _FEEDS:
        return sniffed
    looks_like_page = sniffed.startswith("text/") or sniffed.endswith("+xml")
    return _HTML if looks_like_page or sniffed == _BINARY else sniffed


def _from_file(said: str, sniffed: str) -> str:
    """A declared format without its signature is an error page or an image of another format."""
    if sniffed == _HTML and said in _SIGNED:
        return sniffed
    both = said.startswith("image/") and sniffed.startswith("image/")
    return sniffed if both and "svg" not in said + sniffed else said


def _markup(text: bytes) -> str:
    start = text[:_LONGEST_TAG].lower()
    if start.startswith(b"<!--"):
        return _HTML
    if start.startswith(b"<?xml"):
        return _xml(text)
    for tag in _HTML_TAGS:
        if start.startswith(tag) and (len(start) == len(tag) or start[len(tag)] in _TAG_ENDS):
            return _HTML
    return _xml(text) if start.startswith((b"<rss", b"<feed", b"<svg", b"<urlset")) else _text(text)


def _xml(text: bytes) -> str:
    """Name the kinds of XML that are read differently, by their root."""
    found = _XML_ROOT.search(text)
    return _XML if found is None else _XML_ROOTS[found[0].lower()]


def _container(head: bytes, body: bytes) -> str | None:
    if head.startswith(b"PK\x03\x04"):
        return _zip(body)
    if head.startswith(_OLE):
        return _named(body, _OLE_STREAMS) or "application/x-ole-storage"
    return _media(head)


def _media(head: bytes) -> str | None:
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    # Two letters are too few: the reserved field after the size must be empty.
    if head.startswith(b"BM") and head[6:10] == bytes(4):
        return "image/bmp"
    if head[257:262] == b"ustar":
        return "application/x-tar"
    return None


def _zip(body: bytes) -> str:
    # OpenDocument and EPUB begin with a stored member that holds the type itself.
    if body[30:38] == b"mimetype":
        declared = body[38:138].split(b"PK", 1)[0].strip()
        if declared.startswith((b"application/vnd.oasis", b"application/epub")):
            return declared.decode("ascii", "replace")
    return _named(body, _ZIP_MEMBERS) or _ZIP


def _named(body: bytes, names: tuple[tuple[bytes, str], ...]) -> str | None:
    ends = body if len(body) <= 2 * _DIRECTORY else body[:_DIRECTORY] + body[-_DIRECTORY:]
    return next((kind for name, kind in names if name in ends), None)


def _without_bom(head: bytes) -> bytes:
    if head.startswith(_UTF8_BOM):
        return head[len(_UTF8_BOM) :]
    if head.startswith(_UTF16_BOMS):
        return head[: len(head) & ~1].decode("utf-16", "replace").encode()
    return head


def _text(head: bytes) -> str:
    return _BINARY if head.translate(None, _BINARY_BYTES) != head else _PLAIN
