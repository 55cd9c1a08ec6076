"""EPUB books: the chapters of the spine, one after the other."""

import posixpath
from urllib.parse import unquote

import turbohtml

from trapline.extract.documents.blocks import Block, Sort
from trapline.extract.documents.officexml import facts_of
from trapline.extract.documents.package import Package, local
from trapline.extract.documents.reading import Limits, Reading, Unreadable

_CONTAINER = "META-INF/container.xml"
_PAGES = ("application/xhtml+xml", "text/html", "application/xml")


def read_epub(body: bytes, limits: Limits) -> Reading:
    package = Package(body, limits)
    opf = next(
        (e.get("full-path", "") for e in package.xml(_CONTAINER).iter() if local(e) == "rootfile"),
        "",
    )
    root = package.xml(opf)
    folder = posixpath.dirname(opf)
    files = {e.get("id", ""): e for e in root.iter() if local(e) == "item"}
    blocks: list[Block] = []
    locked = 0
    for reference in (e for e in root.iter() if local(e) == "itemref"):
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
        raise Unreadable("the book is encrypted or lacks its chapters")
    return Reading(blocks, facts_of(root))


def _chapter(content: bytes) -> Block | None:
    if b"<" not in content[:4096]:
        return None
    tree = turbohtml.parse(content, positions=False, detect_encoding=True)
    text = tree.find("body") or tree
    return Block(Sort.MARKDOWN, text.to_text().strip(), text.to_markdown().strip())
