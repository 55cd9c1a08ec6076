"""Line diffs for people: side by side or inline, with the words that differ marked."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from markupsafe import Markup, escape

Kind = Literal["same", "changed", "added", "removed", "gap"]

_CONTEXT: Final = 3
# Beyond this the words of a line are not compared; the lines still are.
_LONGEST_LINE: Final = 2000
_LONGEST_TEXT: Final = 20_000
_WORDS: Final = re.compile(r"\w+|\W")


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row of a diff: the old and the new line with their numbers."""

    kind: Kind
    old_number: int | None
    old: Markup
    new_number: int | None
    new: Markup


def diff_rows(old: str, new: str) -> list[DiffRow]:
    """Compare two texts line by line; what stays the same is cut to some lines of context."""
    before, after = old.splitlines()[:_LONGEST_TEXT], new.splitlines()[:_LONGEST_TEXT]
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    rows: list[DiffRow] = []
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number or group[0][1]:
            rows.append(DiffRow("gap", None, Markup("…"), None, Markup("…")))
        for tag, i1, i2, j1, j2 in group:
            rows += _block(tag, before[i1:i2], after[j1:j2], i1, j1)
    return rows


def _block(
    tag: str, old: Sequence[str], new: Sequence[str], first_old: int, first_new: int
) -> Iterator[DiffRow]:
    for index in range(max(len(old), len(new))):
        left = old[index] if index < len(old) else None
        right = new[index] if index < len(new) else None
        marked = (
            _words(left, right) if tag == "replace" else (escape(left or ""), escape(right or ""))
        )
        yield DiffRow(
            _kind(tag, left, right),
            None if left is None else first_old + index + 1,
            marked[0],
            None if right is None else first_new + index + 1,
            marked[1],
        )


def _kind(tag: str, left: str | None, right: str | None) -> Kind:
    if tag == "equal":
        return "same"
    if left is None:
        return "added"
    return "removed" if right is None else "changed"


def _words(left: str | None, right: str | None) -> tuple[Markup, Markup]:
    """Mark the words that differ in two versions of a line."""
    if left is None or right is None or len(left) + len(right) > _LONGEST_LINE:
        return escape(left or ""), escape(right or "")
    old, new = _WORDS.findall(left), _WORDS.findall(right)
    sides: tuple[list[Markup], list[Markup]] = ([], [])
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        pieces = "".join(old[i1:i2]), "".join(new[j1:j2])
        if tag == "equal":
            sides[0].append(escape(pieces[0]))
            sides[1].append(escape(pieces[1]))
            continue
        if pieces[0]:
            sides[0].append(Markup("<del>{}</del>").format(pieces[0]))
        if pieces[1]:
            sides[1].append(Markup("<ins>{}</ins>").format(pieces[1]))
    return Markup("").join(sides[0]), Markup("").join(sides[1])
