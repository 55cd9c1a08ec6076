"""Rules of one agent, compiled for many look-ups."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from trapline.frontier import percent_encoding

MAX_WILDCARD_RULES = 5000
_ROBOTS_PATH = "/robots.txt"
_PLAIN = re.compile(r"[A-Za-z0-9/._~?&=+,;:@!-]*+")
_LITERAL = str.maketrans({"*": "%2A", "$": "%24"})


class Rule(NamedTuple):
    """One Allow or Disallow line; `pattern` is in the form that paths are compared in."""

    allow: bool
    pattern: str


class _Glob(NamedTuple):
    """A pattern with `*`: a start, parts that follow in order, and the end if it has a `$`."""

    length: int
    allow: bool
    start: str
    parts: tuple[str, ...]
    end: str | None

    def matches(self, path: str) -> bool:
        if not path.startswith(self.start):
            return False
        # The leftmost place of each part leaves the most room for the rest: no backtracking.
        at = len(self.start)
        for part in self.parts:
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return self.end is None or (path.endswith(self.end) and len(path) - len(self.end) >= at)


class Access:
    """The access of one agent to one host: the longest rule decides, and Allow wins a tie."""

    def __init__(self, rules: Iterable[Rule] = (), crawl_delay: float | None = None) -> None:
        self.crawl_delay = crawl_delay
        self._prefixes: dict[str, bool] = {}
        self._whole: dict[str, bool] = {}
        globs: dict[_Glob, None] = {}
        for allow, pattern in rules:
            if "*" in pattern:
                self._add_glob(globs, _glob(allow, pattern))
            elif pattern.endswith("$"):
                self._whole[pattern[:-1]] = allow or self._whole.get(pattern[:-1], False)
            else:
                self._prefixes[pattern] = allow or self._prefixes.get(pattern, False)
        # One look-up for each length costs the same for ten rules as for ten thousand.
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        self._globs: dict[str, list[_Glob]] = {}
        for glob in sorted(globs, key=lambda glob: (-glob.length, not glob.allow)):
            self._globs.setdefault(glob.start, []).append(glob)
        self._start_lengths = sorted({len(start) for start in self._globs})

    def allows(self, url: str) -> bool:
        """Whether the agent may fetch an absolute URL, as the parser serialises it, or a path."""
        path = comparable_path(url)
        if path == _ROBOTS_PATH:
            return True
        best = self._longest_plain(path)
        for length in self._start_lengths:
            for glob in self._globs.get(path[:length], ()):
                if glob.length < best[0]:
                    break
                if glob.matches(path):
                    best = max(best, (glob.length, glob.allow))
                    break
        return best[1]

    def _longest_plain(self, path: str) -> tuple[int, bool]:
        whole = self._whole.get(path)
        if whole is not None:
            # Its `$` makes it longer than any prefix of the path.
            return len(path) + 1, whole
        for length in self._lengths:
            if length <= len(path) and (allowed := self._prefixes.get(path[:length])) is not None:
                return length, allowed
        return 0, True

    def _add_glob(self, globs: dict[_Glob, None], glob: _Glob) -> None:
        if len(globs) < MAX_WILDCARD_RULES:
            globs[glob] = None
        elif not glob.allow:
            # Too strict rather than too slow: everything with its prefix is forbidden.
            self._prefixes[glob.start] = self._prefixes.get(glob.start, False)


def _glob(allow: bool, pattern: str) -> _Glob:
    anchored = pattern.endswith("$")
    start, *parts = (pattern[:-1] if anchored else pattern).split("*")
    end = parts.pop() if anchored else None
    return _Glob(len(pattern), allow, start, tuple(part for part in parts if part), end)


def comparable_path(url: str) -> str:
    """Path and query of a URL, in the form that rules are written in here."""
    path = url if url.startswith("/") else f"/{url.partition('://')[2].partition('/')[2]}"
    if _PLAIN.fullmatch(path):
        return path
    path = path.partition("#")[0]
    if not path.isascii():
        path = percent_encoding.encode_foreign(path.encode(errors="replace"))
    return _decoded_query(percent_encoding.normal(path).translate(_LITERAL))


def comparable_pattern(value: bytes) -> str:
    """A rule's path, in which `*` and a final `$` keep their meaning."""
    pattern = percent_encoding.normal(percent_encoding.encode_foreign(value))
    anchored = pattern.endswith("$")
    pattern = pattern.removesuffix("$").replace("$", "%24")
    return _decoded_query(pattern) + ("$" if anchored else "")


def _decoded_query(path: str) -> str:
    """RFC 9309 compares `?u=https://a` and `?u=https%3A%2F%2Fa` as equal, in the query alone."""
    before, mark, query = path.partition("?")
    if "%" not in query:
        return path
    return f"{before}{mark}{query.replace('%3A', ':').replace('%2F', '/')}"
