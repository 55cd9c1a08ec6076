"""What changed between two versions of a page: as text, as JSON, in numbers.

Lines are compared by what they say: white space, the style of emphasis and bullets, tracking
parameters and the versions of images make no difference. The lines themselves are shown as they are.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from trapline.extract.line_alignment import aligned
from trapline.model import Document

_CONTEXT = 3
_MAX_LINES = 200_000
_LONGEST_LINE = 20_000
"""Longer lines are data that no one wrote; they are compared as they are."""
_TRACKING = re.compile(
    r"(?<=[?&])(?:utm_\w+|gclid|fbclid|msclkid|dclid|yclid|mc_[ce]id|igshid|srsltid|_ga|ref_src"
    r"|sessionid|phpsessid|jsessionid|sid)=[^&#)\s]*&?",
    re.IGNORECASE,
)
_HANGING = re.compile(r"[?&]+(?=[#)\s]|$)")
_IMAGE_VERSION = re.compile(r"(!\[[^\]]{0,200}+\]\([^?)\s]{1,500}+)\?[^)\s]*")
_EMPHASIS = re.compile(r"\\(?=[^\w\s])|(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)")
_BULLET = re.compile(r"^\s*[*+-]\s+")
_RULE = re.compile(r"^[\s|:+=-]{3,}$")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Diff:
    """A difference. `text` is a unified diff; `files` has the shape of parse-diff's JSON."""

    changed: bool
    text: str
    files: list[dict[str, object]]
    added_lines: int = 0
    removed_lines: int = 0
    added_words: int = 0
    removed_words: int = 0

    def as_json(self) -> dict[str, object]:
        return {"text": self.text, "json": {"files": self.files}}


@dataclass(frozen=True, slots=True)
class _Change:
    """One line of a diff: kept ' ', removed '-' or added '+', with its number on each side."""

    mark: str
    line: str
    old: int
    new: int

    def as_json(self) -> dict[str, object]:
        content = self.mark + self.line
        if self.mark == " ":
            return {
                "type": "normal",
                "normal": True,
                "ln1": self.old,
                "ln2": self.new,
                "content": content,
            }
        name, number = ("del", self.old) if self.mark == "-" else ("add", self.new)
        return {"type": name, name: True, "ln": number, "content": content}


def diff(old: Document | str, new: Document | str) -> Diff:
    """Compare two Documents, or two Markdown texts."""
    old_lines, new_lines = _lines(old), _lines(new)
    changes = _changes(old_lines, new_lines)
    added = [change.line for change in changes if change.mark == "+"]
    removed = [change.line for change in changes if change.mark == "-"]
    if not added and not removed:
        return Diff(changed=False, text="", files=[])
    chunks = [_Chunk(changes[start:end]) for start, end in _spans(changes)]
    text = "\n".join(
        ["--- previous", "+++ current", *(line for chunk in chunks for line in chunk.lines())]
    )
    more, fewer = _words(added, removed)
    return Diff(
        changed=True,
        text=text + "\n",
        files=[_file(chunks, len(added), len(removed))],
        added_lines=len(added),
        removed_lines=len(removed),
        added_words=more,
        removed_words=fewer,
    )


def meaning(line: str) -> str:
    """What a line of Markdown says, without what only markup changes."""
    if len(line) > _LONGEST_LINE:
        return line
    if "](" in line or "://" in line:
        line = _IMAGE_VERSION.sub(r"\1", line)
        line = _HANGING.sub("", _TRACKING.sub("", line))
    if _RULE.match(line):
        return ""
    line = _BULLET.sub("- ", line)
    return " ".join(_EMPHASIS.sub("", line).replace("|", " ").split())


def _lines(version: Document | str) -> list[str]:
    text = version if isinstance(version, str) else version.markdown
    return text.splitlines()[:_MAX_LINES]


def _changes(old: list[str], new: list[str]) -> list[_Change]:
    """All lines of both texts in order. Lines that say nothing are never a change."""
    old_said = [(number, said) for number, line in enumerate(old) if (said := meaning(line))]
    new_said = [(number, said) for number, line in enumerate(new) if (said := meaning(line))]
    pairs = aligned([said for _, said in old_said], [said for _, said in new_said])
    changes: list[_Change] = []
    x = y = 0
    for a, b in [*pairs, (len(old_said), len(new_said))]:
        changes += [_Change("-", old[n], n + 1, 0) for n, _ in old_said[x:a]]
        changes += [_Change("+", new[n], 0, n + 1) for n, _ in new_said[y:b]]
        if a < len(old_said):
            n, m = old_said[a][0], new_said[b][0]
            changes.append(_Change(" ", new[m], n + 1, m + 1))
        x, y = a + 1, b + 1
    return changes


def _spans(changes: list[_Change]) -> Iterator[tuple[int, int]]:
    """Where the chunks begin and end: changes with a few kept lines around them."""
    start = end = -1
    for index, change in enumerate(changes):
        if change.mark == " ":
            continue
        if start < 0:
            start = max(0, index - _CONTEXT)
        elif index - end > _CONTEXT:
            yield start, min(end + _CONTEXT, len(changes))
            start = index - _CONTEXT
        end = index + 1
    if start >= 0:
        yield start, min(end + _CONTEXT, len(changes))


@dataclass(frozen=True, slots=True)
class _Chunk:
    changes: list[_Change]

    @property
    def _spread(self) -> tuple[int, int, int, int]:
        old = [change.old for change in self.changes if change.old]
        new = [change.new for change in self.changes if change.new]
        return (old[0] if old else 0), len(old), (new[0] if new else 0), len(new)

    @property
    def header(self) -> str:
        old_start, old_lines, new_start, new_lines = self._spread
        return f"@@ -{old_start},{old_lines} +{new_start},{new_lines} @@"

    def lines(self) -> Iterator[str]:
        yield self.header
        yield from (change.mark + change.line for change in self.changes)

    def as_json(self) -> dict[str, object]:
        old_start, old_lines, new_start, new_lines = self._spread
        return {
            "content": self.header,
            "changes": [change.as_json() for change in self.changes],
            "oldStart": old_start,
            "oldLines": old_lines,
            "newStart": new_start,
            "newLines": new_lines,
        }


def _file(chunks: list[_Chunk], added: int, removed: int) -> dict[str, object]:
    return {
        "from": "previous",
        "to": "current",
        "additions": added,
        "deletions": removed,
        "chunks": [chunk.as_json() for chunk in chunks],
    }


def _words(added: list[str], removed: list[str]) -> tuple[int, int]:
    """Words that are really new or gone: one that moved within changed lines is neither."""
    more = Counter(_WORD.findall("\n".join(added)))
    fewer = Counter(_WORD.findall("\n".join(removed)))
    return (more - fewer).total(), (fewer - more).total()
