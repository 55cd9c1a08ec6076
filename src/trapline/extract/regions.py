"""Where on a page its elements stand: in the header, the navigation, the footer or the body."""

import turbohtml

from trapline.model import Region

_LANDMARKS = (
    "header, nav, footer, [role=banner], [role=navigation], [role=contentinfo],"
    "#header, #masthead, #nav, #navigation, #navbar, #menu, #footer, #colophon"
)
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


def regions(tree: turbohtml.Document) -> dict[turbohtml.Element, Region]:
    """The region of every element outside the body; the outermost landmark decides.

    Each element is looked at once, however deep the landmarks are nested.
    """
    found: dict[turbohtml.Element, Region] = {}
    for landmark in tree.select(_LANDMARKS):
        if landmark in found or _belongs_to_content(landmark):
            continue
        region = _region_of(landmark)
        found.update(dict.fromkeys(landmark.iter_elements(include_self=True), region))
    return found


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
