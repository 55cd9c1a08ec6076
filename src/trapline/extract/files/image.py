"""Images: their format and size, and what their header says of them; there is no OCR here."""

import re
import struct

from trapline.extract.files.blocks import paragraph
from trapline.extract.files.reader_result import FileContent, Limits, UnsupportedFile

_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_JPEG_ALONE = {0x01, *range(0xD0, 0xDA)}
_SVG_TAG = re.compile(rb"<svg[^>]{0,4000}>")
_SVG_SIZE = re.compile(rb"\b(width|height)\s*=\s*[\"']([\d.]{1,9})(?:px)?[\"']")
_SVG_TITLE = re.compile(rb"<title[^>]*>([^<]{1,500})</title>")
_TEXT_KEYS = {
    "Title": "title",
    "Author": "author",
    "Description": "description",
    "Creation Time": "published",
}
_MAX_CHUNKS = 1_000


def read_image(body: bytes, limits: Limits) -> FileContent:
    del limits
    name, width, height, properties = _properties(body)
    size = {"imageFormat": name, "imageWidth": str(width), "imageHeight": str(height)}
    block = paragraph(
        properties.get("description")
        or properties.get("title")
        or f"{name} image, {width} by {height} pixels"
    )
    return FileContent(
        [block], {**properties, **size}, warning="An image: only its metadata was read."
    )


def _properties(body: bytes) -> tuple[str, int, int, dict[str, str]]:
    try:
        if body.startswith(b"\x89PNG"):
            return ("PNG", *struct.unpack(">II", body[16:24]), _png_texts(body))
        if body.startswith(b"GIF8"):
            return ("GIF", *struct.unpack("<HH", body[6:10]), {})
        if body.startswith(b"BM"):
            width, height = struct.unpack("<ii", body[18:26])
            return "BMP", width, abs(height), {}
        if body.startswith(b"\xff\xd8"):
            return ("JPEG", *_jpeg_size(body), {})
        if body[:4] == b"RIFF":
            return ("WebP", *_webp_size(body), {})
    except (struct.error, IndexError) as error:
        raise UnsupportedFile("an image whose header is damaged") from error
    return _svg(body)


def _png_texts(body: bytes) -> dict[str, str]:
    """The tEXt chunks of a PNG."""
    found: dict[str, str] = {}
    place = 8
    for _ in range(_MAX_CHUNKS):
        length, kind = (
            struct.unpack(">I4s", body[place : place + 8])
            if place + 8 <= len(body)
            else (0, b"IEND")
        )
        if kind == b"IEND":
            break
        if kind == b"tEXt":
            key, _, value = body[place + 8 : place + 8 + min(length, 10_000)].partition(b"\x00")
            if name := _TEXT_KEYS.get(key.decode("latin-1")):
                found[name] = value.decode("latin-1")
        place += length + 12
    return found


def _jpeg_size(body: bytes) -> tuple[int, int]:
    place = 2
    for _ in range(_MAX_CHUNKS):
        if body[place] != 0xFF:  # noqa: PLR2004 - every marker begins so
            break
        marker = body[place + 1]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", body[place + 5 : place + 9])
            return width, height
        place += (
            2 if marker in _JPEG_ALONE else 2 + int.from_bytes(body[place + 2 : place + 4], "big")
        )
    raise IndexError


def _webp_size(body: bytes) -> tuple[int, int]:
    kind = body[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(body[24:27], "little"), 1 + int.from_bytes(body[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(body[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", body[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _svg(body: bytes) -> tuple[str, int, int, dict[str, str]]:
    head = body[:20_000]
    tag = _SVG_TAG.search(head)
    if tag is None:
        raise UnsupportedFile("an image of a kind whose header is not known")
    sizes = {name: int(float(number)) for name, number in _SVG_SIZE.findall(tag.group())}
    title = _SVG_TITLE.search(head)
    properties = {"title": title.group(1).decode("utf-8", "replace").strip()} if title else {}
    return "SVG", sizes.get(b"width", 0), sizes.get(b"height", 0), properties
