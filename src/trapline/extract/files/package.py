"""A zip archive read within a budget: the container of office files and books."""

import posixpath
import zipfile
import zlib
from io import BytesIO
from xml.etree import ElementTree as ET

from trapline.extract.files.reader_result import FileTooLarge, Limits, UnreadableFile

_ENCRYPTED = 0x1


class ZipPackage:
    """The members of an archive. All that is unpacked together stays within the limit."""

    def __init__(self, body: bytes, limits: Limits) -> None:
        try:
            self._zip = zipfile.ZipFile(BytesIO(body))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError) as error:
            raise UnreadableFile(f"the archive is damaged: {error}") from error
        self._members = {info.filename: info for info in self._zip.infolist()}
        self._left = limits.unpacked_bytes

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        info = self._members.get(name)
        if info is None:
            raise UnreadableFile(f"the archive lacks {name}")
        if info.flag_bits & _ENCRYPTED:
            raise UnreadableFile("the file is encrypted")
        if info.file_size > self._left:
            raise FileTooLarge("the archive unpacks to more than the limit")
        try:
            with self._zip.open(info) as member:
                content = member.read(self._left + 1)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError) as error:
            raise UnreadableFile(f"the archive is damaged: {error}") from error
        self._left -= len(content)
        if self._left < 0:
            raise FileTooLarge("the archive unpacks to more than the limit")
        return content

    def xml(self, name: str) -> ET.Element:
        return parse_xml(self.read(name))

    def optional_xml(self, name: str) -> ET.Element | None:
        return self.xml(name) if name in self._members else None

    def relations(self, part: str) -> dict[str, str]:
        """The targets that a part of an Office Open XML file refers to, by their ids."""
        folder, name = posixpath.split(part)
        root = self.optional_xml(posixpath.join(folder, "_rels", name + ".rels"))
        found: dict[str, str] = {}
        for relation in root if root is not None else ():
            target = relation.get("Target", "")
            if relation.get("TargetMode") != "External":
                # A target that begins with a slash counts from the root of the archive.
                target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            found[relation.get("Id", "")] = target
        return found


def parse_xml(content: bytes) -> ET.Element:
    """The tree of an XML part. Entity declarations, the stuff of bombs, are refused."""
    wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    source = content.decode("utf-16", "replace") if wide else content
    if (b"<!ENTITY" in content) or (isinstance(source, str) and "<!ENTITY" in source):
        raise UnreadableFile("the XML declares entities")
    try:
        # Declared entities are refused above, and expat loads nothing from outside.
        return ET.fromstring(source)  # noqa: S314
    except (ET.ParseError, ValueError, LookupError) as error:
        raise UnreadableFile(f"the XML is damaged: {error}") from error


def local_name(element: ET.Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]
