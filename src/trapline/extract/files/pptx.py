"""PowerPoint files: slide by slide, title first, with tables and the speaker's notes."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from trapline.extract.files.blocks import Block, BlockKind, heading, page, paragraph, table
from trapline.extract.files.officexml import A, P, R, core_properties, is_on
from trapline.extract.files.package import ZipPackage
from trapline.extract.files.reader_result import FileContent, Limits
from trapline.extract.files.runs import Runs, Style

_SHOW = "ppt/presentation.xml"
_TITLES = ("title", "ctrTitle")
_FURNITURE = ("dt", "ftr", "sldNum", "hdr")


def read_pptx(body: bytes, limits: Limits) -> FileContent:
    package = ZipPackage(body, limits)
    parts = package.relations(_SHOW)
    names = [
        parts.get(slide.get(R + "id", ""), "") for slide in package.xml(_SHOW).iter(P + "sldId")
    ]
    slides = [name for name in names if name in package]
    blocks: list[Block] = []
    for number, name in enumerate(slides[: limits.pages], 1):
        blocks.append(page(number))
        blocks += _slide(package, name)
    cut = len(slides) > limits.pages
    warning = f"Only the first {limits.pages} of {len(slides)} slides were read." if cut else None
    return FileContent(blocks, core_properties(package), pages=len(slides), warning=warning)


def _slide(package: ZipPackage, name: str) -> Iterator[Block]:
    links = package.relations(name)
    shapes = list(_shapes(package.xml(name).find(f"{P}cSld/{P}spTree")))
    # Titles come first whatever the order of drawing.
    shapes.sort(key=lambda shape: _role(shape) not in _TITLES)
    for shape in shapes:
        yield from _shape(shape, links)
    for target in links.values():
        if "/notesSlides/" in f"/{target}" and target in package:
            yield from _notes(package, target)


def _shapes(tree: ET.Element | None) -> Iterator[ET.Element]:
    for child in tree if tree is not None else ():
        if child.tag == P + "grpSp":
            yield from _shapes(child)
        elif child.tag in (P + "sp", P + "graphicFrame"):
            yield child


def _role(shape: ET.Element) -> str:
    place = shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
    return place.get("type", "body") if place is not None else ""


def _shape(shape: ET.Element, links: dict[str, str]) -> Iterator[Block]:
    if shape.tag == P + "graphicFrame":
        rows = [[_text(cell) for cell in row.iter(A + "tc")] for row in shape.iter(A + "tr")]
        if rows:
            yield table(rows)
        return
    role = _role(shape)
    if role in _FURNITURE:
        return
    if role in _TITLES:
        title = _text(shape)
        if title:
            yield heading(title, 2)
        return
    for element in shape.iter(A + "p"):
        runs = _runs(element, links)
        if runs.text:
            yield _placed(element, runs, is_list=role == "body")


def _placed(element: ET.Element, runs: Runs, *, is_list: bool) -> Block:
    look = element.find(A + "pPr")
    level = (
        int(look.get("lvl", "0")) if look is not None and look.get("lvl", "0").isdecimal() else 0
    )
    ordered = look is not None and look.find(A + "buAutoNum") is not None
    bulleted = look is not None and look.find(A + "buChar") is not None
    plain = look is not None and look.find(A + "buNone") is not None
    if (is_list or ordered or bulleted) and not plain:
        return runs.block(BlockKind.ITEM, min(level, 8), ordered=ordered)
    return paragraph(runs.text, runs.markup)


def _runs(element: ET.Element, links: dict[str, str]) -> Runs:
    runs = Runs()
    for child in element:
        if child.tag == A + "br":
            runs.add("\n")
        text = child.find(A + "t")
        if text is None:
            continue
        look = child.find(A + "rPr")
        link = look.find(A + "hlinkClick") if look is not None else None
        href = links.get(link.get(R + "id", ""), "") if link is not None else ""
        runs.add(
            text.text or "",
            Style(_toggle(look, "b"), _toggle(look, "i"), href if "://" in href else ""),
        )
    return runs


def _toggle(look: ET.Element | None, name: str) -> bool:
    return look is not None and look.get(name) is not None and is_on(look, name)


def _text(element: ET.Element) -> str:
    lines = (
        "".join(part.text or "" for part in line.iter(A + "t")) for line in element.iter(A + "p")
    )
    return " ".join(" ".join(lines).split())


def _notes(package: ZipPackage, name: str) -> Iterator[Block]:
    for shape in _shapes(package.xml(name).find(f"{P}cSld/{P}spTree")):
        if _role(shape) == "body" and (text := _text(shape)):
            yield paragraph(f"Notes: {text}")
