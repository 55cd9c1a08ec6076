"""EPUB books: the chapters of the spine, one after the other."""

import posixpath
from urllib.parse import unquote

import turbohtml

from trapline.extract.files.blocks import Block, BlockKind
from trapline.extract.files.officexml import dublin_core
from trapline.extract.files.package import ZipPackage, local_name
from trapline.extract.files.reader_result import FileContent, Limits, UnreadableFile

_CONTAINER = "META-INF/container.xml"
_PAGES = ("application/xhtml+xml", "text/html", "application/xml")


def read_epub(body: bytes, limits: Limits) -> FileContent:
    package = ZipPackage(body, limits)
    opf = next(
        (
            e.get("full-path", "")
            for e in package.xml(_CONTAINER).iter()
            if local_name(e) == "rootfile"
        ),
        "",
    )
    root = package.xml(opf)
    folder = posixpath.dirname(opf)
    files = {e.get("id", ""): e for e in root.iter() if local_name(e) == "item"}
    blocks: list[Block] = []
    locked = 0
    for reference in (e for e in root.iter() if local_name(e) == "itemref"):
        entry = files.get(reference.get("idref", ""))
        if (
            entry is None
            or entry.get("media-type") not in _PAGES
            or "nav" in entry.get("properties", "").split()
        ):
            continue
        name = posixpath.normpath(posixpath.join(folder, unquote(entry.get("href", ""))))
        chapter = _chapter(package.read(name)) if name in package else None
        locked += chapter is None
        blocks += [chapter] if chapter and chapter.text else []
    if locked and not blocks:
        raise UnreadableFile("the book is encrypted or lacks its chapters")
    return FileContent(blocks, dublin_core(root))


def _chapter(content: bytes) -> Block | None:
    if b"<" not in content[:4096]:
        return None
    tree = turbohtml.parse(content, positions=False, detect_encoding=True)
    text = tree.find("body") or tree
    return Block(BlockKind.MARKDOWN, text.to_text().strip(), text.to_markdown().strip())
