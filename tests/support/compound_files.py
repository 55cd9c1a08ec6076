"""Compound files of the nineties (DOC, XLS, PPT, MSG) written by hand, as small as readers allow."""

import struct
from collections.abc import Iterable

_SECTOR, _MINI, _SMALL = 512, 64, 4096
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_STREAM, _ROOT, _STORAGE = 2, 5, 1


def compound(streams: dict[str, bytes]) -> bytes:
    """A compound file (version 3) with some streams in its root; empty ones become storages."""
    names = sorted(streams, key=lambda name: (len(name), name.upper()))
    minis, small = bytearray(), {}
    sectors: list[bytes] = []
    chains: list[int] = []

    def store(data: bytes) -> int:
        first = len(sectors)
        count = -(-len(data) // _SECTOR)
        for number in range(count):
            sectors.append(data[number * _SECTOR :][:_SECTOR].ljust(_SECTOR, b"\0"))
            chains.append(first + number + 1 if number + 1 < count else _END)
        return first if count else _END

    mini_chain: list[int] = []
    for name in names:
        data = streams[name]
        if 0 < len(data) < _SMALL:
            small[name] = len(minis) // _MINI
            count = -(-len(data) // _MINI)
            mini_chain += [small[name] + n + 1 for n in range(count - 1)] + [_END]
            minis += data.ljust(count * _MINI, b"\0")
    starts = {name: store(data) for name, data in streams.items() if len(data) >= _SMALL} | small
    root_start = store(bytes(minis))
    mini_fat = b"".join(struct.pack("<I", link) for link in mini_chain)
    mini_fat_start = store(mini_fat.ljust(-(-len(mini_fat) // _SECTOR) * _SECTOR, b"\xff"))
    entries = [_entry("Root Entry", _ROOT, 1 if names else _FREE, _FREE, root_start, len(minis))]
    for number, name in enumerate(names, start=1):
        after = number + 1 if number < len(names) else _FREE
        kind = _STREAM if streams[name] else _STORAGE
        start = starts.get(name, 0)
        entries.append(_entry(name, kind, _FREE, after, start, len(streams[name])))
    while len(entries) % (_SECTOR // 128):
        entries.append(b"\0" * 68 + struct.pack("<III", _FREE, _FREE, _FREE) + b"\0" * 48)
    directory = store(b"".join(entries))
    fat_at = len(sectors)
    chains.append(_FAT)
    fat = b"".join(struct.pack("<I", link) for link in chains).ljust(_SECTOR, b"\xff")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 16
    header += struct.pack(
        "<HHHHH6xIIIIII", 62, 3, 0xFFFE, 9, 6, 0, 1, directory, 0, _SMALL, mini_fat_start
    )
    header += struct.pack("<III", 1 if mini_fat else 0, _END, 0)
    header += struct.pack("<I", fat_at).ljust(436, b"\xff")
    return header + b"".join(sectors) + fat


def _entry(name: str, kind: int, child: int, right: int, start: int, size: int) -> bytes:
    title = name.encode("utf-16-le") + b"\0\0"
    head = title.ljust(64, b"\0") + struct.pack("<HBBIII", len(title), kind, 1, _FREE, right, child)
    return head + b"\0" * 36 + struct.pack("<IQ", start, size)


def doc(text: str) -> bytes:
    """A Word 97 document of one piece of text."""
    start = 0x800
    letters = text.replace("\n", "\r").encode("cp1252") + b"\r"
    fib = struct.pack("<HHHHHHH", 0xA5EC, 0x00C1, 0, 0x0409, 0, 0x1200, 0x00BF).ljust(32, b"\0")
    fib += struct.pack("<H", 14) + b"\0" * 28
    fib += struct.pack("<H", 22) + struct.pack(
        "<IIII", start + len(letters), 0, 0, len(letters)
    ).ljust(88, b"\0")
    pieces = struct.pack("<II", 0, len(letters)) + struct.pack("<HIH", 0, (start * 2) | 1 << 30, 0)
    table = b"\x02" + struct.pack("<I", len(pieces)) + pieces
    pairs = [(0, 0)] * 93
    pairs[33] = (0, len(table))
    fib += struct.pack("<H", len(pairs)) + b"".join(struct.pack("<II", *pair) for pair in pairs)
    word = fib.ljust(start, b"\0") + letters
    return compound(
        {"WordDocument": word.ljust(_SMALL, b"\0"), "1Table": table.ljust(_SMALL, b"\0")}
    )


def xls(sheet: str, rows: list[list[str | float]]) -> bytes:
    """A workbook of Excel 97 with one sheet."""
    texts = list(dict.fromkeys(cell for row in rows for cell in row if isinstance(cell, str)))
    shared = struct.pack("<II", len(texts), len(texts)) + b"".join(
        struct.pack("<HB", len(text), 0) + text.encode("latin-1") for text in texts
    )
    body = _biff(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0x0DBB, 0x07CC, 0, 6))
    body += _biff(0x200, struct.pack("<IIHHH", 0, len(rows), 0, max(map(len, rows)), 0))
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            place = struct.pack("<HHH", y, x, 0)
            if isinstance(cell, str):
                body += _biff(0xFD, place + struct.pack("<I", texts.index(cell)))
            else:
                body += _biff(0x203, place + struct.pack("<d", cell))
    body += _biff(0x0A, b"")
    begin = _biff(0x809, struct.pack("<HHHHII", 0x600, 0x05, 0x0DBB, 0x07CC, 0, 6))
    begin += _biff(0x42, struct.pack("<H", 1200))
    name = struct.pack("<BB", len(sheet), 0) + sheet.encode("latin-1")
    rest = _biff(0xFC, shared) + _biff(0x0A, b"")
    offset = len(begin) + 4 + 6 + len(name) + len(rest)
    begin += _biff(0x85, struct.pack("<IH", offset, 0) + name) + rest
    return compound({"Workbook": (begin + body).ljust(_SMALL, b"\0")})


def _biff(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def ppt(slides: Iterable[str]) -> bytes:
    """A presentation of PowerPoint 97: the outline of its slides, without any shape."""
    outline = b""
    for number, text in enumerate(slides):
        outline += _atom(0x3F3, struct.pack("<IIIII", number + 2, 0, 1, number + 256, 0))
        outline += _atom(0xF9F, struct.pack("<I", 1))
        outline += _atom(0xFA0, text.replace("\n", "\r").encode("utf-16-le"))
    document = _atom(0x3E8, _atom(0xFF0, outline, nested=True), nested=True)
    user = _atom(0xFF6, struct.pack("<IIIHHBBH", 20, 0xE391C05F, 0, 0, 0x3F4, 3, 0, 0))
    return compound({"PowerPoint Document": document.ljust(_SMALL, b"\0"), "Current User": user})


def _atom(kind: int, data: bytes, *, nested: bool = False) -> bytes:
    return struct.pack("<HHI", 0xF if nested else 0, kind, len(data)) + data


def msg(subject: str, sender: str, body: str) -> bytes:
    """A message of Outlook: subject, sender and plain text."""
    fields = {"0037": subject, "0C1A": sender, "1000": body}
    entries = b"".join(
        struct.pack("<HHIII", 0x1F, int(tag, 16), 6, len(text) * 2 + 2, 0)
        for tag, text in fields.items()
    )
    streams = {f"__substg1.0_{tag}001F": text.encode("utf-16-le") for tag, text in fields.items()}
    return compound({"__properties_version1.0": b"\0" * 32 + entries, **streams})
