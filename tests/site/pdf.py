"""A small writer of PDF files: enough for text, pictures without text, and a password."""

from collections.abc import Sequence
from hashlib import md5

_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
_PERMISSIONS = -44
_IDENTITY = b"trapline-site-01"


def pdf(pages: Sequence[Sequence[str]], title: str = "", password: str | None = None) -> bytes:
    """Return a document with these lines of Latin text on each page, the first one large."""
    return _write([_text(lines) for lines in pages], title, password)


def scanned_pdf(pages: int) -> bytes:
    """Return a document whose pages are pictures: there is no text in it."""
    picture = b"q 400 0 0 500 100 200 cm BI /W 4 /H 4 /CS /G /BPC 8 ID " + bytes(range(0, 256, 16))
    return _write([picture + b" EI Q"] * pages, "", None)


def _text(lines: Sequence[str]) -> bytes:
    parts = ["BT"]
    for at, line in enumerate(lines):
        size = 20 if at == 0 else 11
        escaped = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        parts.append(f"/F1 {size} Tf 1 0 0 1 72 {760 - 22 * at} Tm ({escaped}) Tj")
    return "\n".join([*parts, "ET"]).encode("cp1252")


def _write(contents: list[bytes], title: str, password: str | None) -> bytes:
    """Number the objects: catalogue, page tree, font, information, then two for each page."""
    lock = _Lock(password) if password is not None else None
    kids = " ".join(f"{5 + 2 * at} 0 R" for at in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(contents)} /Kids [{kids}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Title (" + title.encode("cp1252") + b") >>" if lock is None else b"<< >>",
    ]
    for at, content in enumerate(contents):
        number = 6 + 2 * at
        data = lock.encrypt(content, number) if lock else content
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842]"
            b" /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>" % number
        )
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(data), data))
    return _assemble(objects, lock.dictionary() if lock else b"")


def _assemble(objects: list[bytes], encryption: bytes) -> bytes:
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    identity = _IDENTITY.hex().encode()
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R /ID [<%b><%b>]%b >>\n" % (
        len(objects) + 1,
        identity,
        identity,
        encryption,
    )
    out += b"startxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


class _Lock:
    """The first security handler of PDF: RC4 with 40 bits. Weak, and understood by every reader."""

    def __init__(self, password: str) -> None:
        padded = (password.encode("cp1252") + _PADDING)[:32]
        self._owner = _rc4(_md5(padded)[:5], padded)
        permissions = _PERMISSIONS.to_bytes(4, "little", signed=True)
        self._key = _md5(padded + self._owner + permissions + _IDENTITY)[:5]
        self._user = _rc4(self._key, _PADDING)

    def dictionary(self) -> bytes:
        return b" /Encrypt << /Filter /Standard /V 1 /R 2 /O <%b> /U <%b> /P %d >>" % (
            self._owner.hex().encode(),
            self._user.hex().encode(),
            _PERMISSIONS,
        )

    def encrypt(self, data: bytes, number: int) -> bytes:
        salt = number.to_bytes(3, "little") + b"\0\0"
        return _rc4(_md5(self._key + salt)[:10], data)


def _md5(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).digest()


def _rc4(key: bytes, data: bytes) -> bytes:
    box, j = list(range(256)), 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)
