"""How much of a markdown's structure another one keeps: headings, list items, table rows, code."""

import re
from collections import Counter

from benchmarks.extractor.scoring import words_of

_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(.*)")
_ROW = re.compile(r"\s*\|(.*)\|\s*$")
_RULE = re.compile(r"[\s|:-]+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def structure_of(markdown: str) -> dict[str, Counter[str]]:
    """The words of each line that is a heading, a list item, a row of a table or code."""
    found: dict[str, Counter[str]] = {
        kind: Counter() for kind in ("headings", "lists", "tables", "code")
    }
    fenced = False
    for line in markdown.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            _note(found["code"], line)
        elif match := _HEADING.match(line):
            _note(found["headings"], match[1])
        elif match := _ITEM.match(line):
            _note(found["lists"], match[1])
        elif (match := _ROW.match(line)) and not _RULE.fullmatch(line):
            _note(found["tables"], match[1])
    return found


def _note(lines: Counter[str], text: str) -> None:
    words = " ".join(words_of(_LINK.sub(r"\1", text)))
    if words:
        lines[words] += 1


def kept_structure(markdown: str, truth: str) -> dict[str, float]:
    """The share of the truth's lines of each kind that are there as such; only kinds it has."""
    ours, wanted = structure_of(markdown), structure_of(truth)
    return {
        kind: sum((ours[kind] & lines).values()) / sum(lines.values())
        for kind, lines in wanted.items()
        if lines
    }
