"""Small pictures, written byte by byte."""

import struct
import zlib

TYPES = {
    "png": "image/png",
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "bmp": "image/bmp",
    "svg": "image/svg+xml",
}


def png(width: int = 64, height: int = 32) -> bytes:
    """Return a picture whose colours run from left to right and from top to bottom."""
    rows = b"".join(
        b"\0" + b"".join(bytes((x * 255 // width, y * 255 // height, 96)) for x in range(width))
        for y in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"tEXt", b"Title\0A slope of colours")
        + _chunk(b"IDAT", zlib.compress(rows, 9))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def gif() -> bytes:
    """Return one pixel, as trackers use it."""
    return (
        b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\x01\0\0\0\0"
        b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;"
    )


def bmp(width: int = 8, height: int = 8) -> bytes:
    pixels = bytes((40, 120, 60)) * width * height
    head = struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0) + pixels


def jpeg() -> bytes:
    """Return eight by eight grey pixels: one block whose every coefficient is zero."""
    quantisation = b"\xff\xdb\0\x43\0" + b"\x01" * 64
    frame = b"\xff\xc0\0\x0b\x08\0\x08\0\x08\x01\x01\x11\0"
    # Each table has one code of one bit: "no difference" for DC, "end of block" for AC.
    tables = b"".join(
        b"\xff\xc4\0\x14" + kind + b"\x01" + bytes(15) + b"\0" for kind in (b"\0", b"\x10")
    )
    scan = b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + b"\x3f"
    application = b"\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    return b"\xff\xd8" + application + quantisation + frame + tables + scan + b"\xff\xd9"


def svg() -> bytes:
    return (
        b'<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32"><title>A hill</title>'
        b'<path d="M0 30 L16 6 L32 30 Z" fill="#484"/><text x="4" y="28">hill</text></svg>'
    )
