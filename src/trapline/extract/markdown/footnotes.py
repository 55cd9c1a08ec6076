"""Footnotes: a reference becomes `[^1]`, the note it leads to `[^1]: …`."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import turbohtml

from trapline.extract.html.attribute_scan import EVERYTHING, FOOTNOTE
from trapline.extract.html.outline import Outline

NOTE: Final = "note-text"
REFERENCE: Final = "note-mark"
_REFERENCES: Final = (
    'sup a[href*="#"],a[class~="footnote-ref"],a[role="doc-noteref"],a[rel="footnote"]'
)
_TARGETS: Final = re.compile(
    r"^(?:fn|footnote|cite_note|note|ftn|endnote|en)[\w:.-]*$", re.IGNORECASE
)
_BACK: Final = 'a.footnote-back,a.footnote-backref,a[role="doc-backlink"],a[rev="footnote"]'
_ARROWS: Final = frozenset("↩↩︎↵^⏎⤴")
_MAX_NOTES: Final = 1_000
_LABEL: Final = re.compile(r"[^\w-]+")


def mark_footnotes(
    body: turbohtml.Element, outline: Outline, attribute_flags: int = EVERYTHING
) -> None:
    """Rename references and notes, so that their converters see them.

    What is `attribute_flags` in the page's source, and what is in it, says whether there can be any.
    """
    labels: dict[str, str] = {}
    if not attribute_flags & FOOTNOTE and not outline.may_have("sup"):
        return
    # All of them before any is renamed.
    for anchor, target in list(islice(_references(outline.elements("a", body)), _MAX_NOTES)):
        label = labels.setdefault(target, _label(anchor.text, len(labels) + 1))
        parent = anchor.parent
        around = parent if isinstance(parent, turbohtml.Element) and parent.tag == "sup" else anchor
        around.tag = REFERENCE
        around.attrs["data-label"] = label
    if labels:
        _mark_notes(body, labels)


def _references(
    anchors: Iterable[turbohtml.Element],
) -> Iterator[tuple[turbohtml.Element, str]]:
    """Those that lead to notes, and which these are."""
    for anchor in anchors:
        target = (anchor.attr("href") or "").rpartition("#")[2]
        # Most lead elsewhere, and that is seen sooner than what they are.
        if _TARGETS.match(target) and anchor.matches(_REFERENCES):
            yield anchor, target


def _label(text: str, number: int) -> str:
    return _LABEL.sub("", text) or str(number)


def _mark_notes(body: turbohtml.Element, labels: dict[str, str]) -> None:
    for note in body.select("[id]"):
        label = labels.get(note.attr("id") or "")
        if label is None or note.tag in (REFERENCE, "a", "sup"):
            continue
        for back in note.select(_BACK):
            back.decompose()
        for anchor in note.find_all("a"):
            if set(anchor.text.strip()) <= _ARROWS:
                anchor.decompose()
        parent = note.parent
        if isinstance(parent, turbohtml.Element) and parent.tag in ("ol", "ul"):
            parent.tag = "div"
        note.tag = NOTE
        note.attrs["data-label"] = label


def write_reference(element: turbohtml.Element, rendered: str) -> str:
    del rendered
    return f"[^{element.attr('data-label')}]"


def write_note(element: turbohtml.Element, rendered: str) -> str:
    text = rendered.strip().replace("\n\n", "\n\n    ")
    return f"\n\n[^{element.attr('data-label')}]: {text}\n\n"
