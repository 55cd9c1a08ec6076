"""Where on a page its elements stand: in the header, the navigation, the footer or the body."""

import turbohtml

from trapline.extract.html import attribute_scan
from trapline.extract.html.outline import Outline, find_rows
from trapline.model import Region

_IDS = "#header, #masthead, #nav, #navigation, #navbar, #menu, #footer, #colophon"
_BY_TAG = {"header": Region.HEADER, "nav": Region.NAV, "footer": Region.FOOTER}
_BY_ROLE = {
    "banner": Region.HEADER,
    "navigation": Region.NAV,
    "contentinfo": Region.FOOTER,
}
_BY_ID = {
    "header": Region.HEADER,
    "masthead": Region.HEADER,
    "footer": Region.FOOTER,
    "colophon": Region.FOOTER,
}


def landmarks(
    tree: turbohtml.Document, outline: Outline, attribute_flags: int = attribute_scan.EVERYTHING
) -> list[tuple[int, Region]]:
    """What stands outside the body, by ascending rows; of nested ones the outermost counts.

    `attribute_flags` is what the page's source can hold.
    """
    tags = [tag for tag in _BY_TAG if outline.may_have(tag)]
    rows = {row for tag in tags for row in outline.row_list(tag)}
    others = tree.select(_IDS) if attribute_flags & attribute_scan.LANDMARK_ID else []
    if attribute_flags & attribute_scan.LANDMARK_ROLES:
        others += _by_role(tree, tags, attribute_flags)
    if not rows and not others:
        return []
    if others:
        rows.update(find_rows(outline.nodes, others))
    found = ((row, outline.nodes[row]) for row in sorted(rows))
    return [
        (row, _region_of(landmark)) for row, landmark in found if not _belongs_to_content(landmark)
    ]


def _by_role(
    tree: turbohtml.Document, tags: list[str], attribute_flags: int
) -> list[turbohtml.Element]:
    """Landmarks by role, but for those that are by their tags.

    Nearly all others are divisions, and those of a tag are found much sooner than those of any.
    """
    divisions = _with_role(tree, "div")
    known = len(divisions) + sum(len(_with_role(tree, tag)) for tag in tags)
    if attribute_scan.are_all(tree, known, attribute_flags, attribute_scan.LANDMARK_ROLES):
        return divisions
    return _with_role(tree, "")


def _with_role(tree: turbohtml.Document, tag: str) -> list[turbohtml.Element]:
    return [one for one in tree.select(f"{tag}[role]") if one.attr("role") in _BY_ROLE]


def _region_of(landmark: turbohtml.Element) -> Region:
    return (
        _BY_ROLE.get(landmark.attr("role") or "")
        or _BY_TAG.get(landmark.tag)
        or _BY_ID.get((landmark.attr("id") or "").lower(), Region.NAV)
    )


def _belongs_to_content(landmark: turbohtml.Element) -> bool:
    """An article has a header and a footer of its own, and they are content."""
    if landmark.tag not in ("header", "footer") or landmark.attr("role"):
        return False
    return landmark.closest("article, main, section, dialog") is not None
