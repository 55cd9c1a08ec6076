"""Footnotes: a reference becomes `[^1]`, the note it leads to `[^1]: …`."""

import re
from collections.abc import Iterable
from typing import Final

import turbohtml

from trapline.extract.marks import EVERYTHING, FOOTNOTE

NOTE: Final = "note-text"
REFERENCE: Final = "note-mark"
_RAISED: Final = 'sup a[href*="#"]'
_REFERENCES: Final = (
    _RAISED,
    'a[class~="footnote-ref"]',
    'a[role="doc-noteref"]',
    'a[rel="footnote"]',
)
_MARKS: Final = (("class", "footnote-ref"), ("role", "doc-noteref"), ("rel", "footnote"))
_TARGETS: Final = re.compile(
    r"^(?:fn|footnote|cite_note|note|ftn|endnote|en)[\w:.-]*$", re.IGNORECASE
)
_BACK: Final = 'a.footnote-back,a.footnote-backref,a[role="doc-backlink"],a[rev="footnote"]'
_ARROWS: Final = frozenset("↩↩︎↵^⏎⤴")
_MAX_NOTES: Final = 1_000
_LABEL: Final = re.compile(r"[^\w-]+")


def mark_footnotes(
    body: turbohtml.Element,
    anchors: Iterable[turbohtml.Element],
    marked: int = EVERYTHING,
    *,
    raised: bool = True,
) -> None:
    """Rename references and notes, so that their converters see them.

    The body's anchors, what is `marked` in the page's source and whether anything is `raised` say
    whether it is worth while to look.
    """
    labels: dict[str, str] = {}
    if not (marked & FOOTNOTE and any(map(_is_marked, anchors))) and not (
        raised and body.select_one(_RAISED)
    ):
        return
    for anchor in body.select(",".join(_REFERENCES))[:_MAX_NOTES]:
        target = (anchor.attr("href") or "").rpartition("#")[2]
        if not _TARGETS.match(target):
            continue
        label = labels.setdefault(target, _label(anchor.text, len(labels) + 1))
        parent = anchor.parent
        around = parent if isinstance(parent, turbohtml.Element) and parent.tag == "sup" else anchor
        around.tag = REFERENCE
        around.attrs["data-label"] = label
    if labels:
        _mark_notes(body, labels)


def _is_marked(anchor: turbohtml.Element) -> bool:
    """Whether it can be one of the references that are marked as such."""
    return any(word in (anchor.attr(name) or "").lower() for name, word in _MARKS)


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
