"""Splits SQL scripts into statements, aware of strings, quoted names, comments and $bodies$."""

import re
from collections.abc import Iterator

_OPAQUE = re.compile(
    r"""
      --[^\n]*                                   # comment to the end of the line
    | /\*.*?\*/                                  # block comment
    | \b[eE]'(?:[^'\\]|\\.|'')*'                 # string with escapes
    | '(?:[^']|'')*'                             # string
    | "(?:[^"]|"")*"                             # quoted name
    | (?<![\w$])\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$   # dollar-quoted body
    """,
    re.VERBOSE | re.DOTALL,
)


def segments(sql: str) -> Iterator[tuple[str, bool]]:
    """Yield the text in order, in segments, each with whether it is code."""
    end = 0
    for match in _OPAQUE.finditer(sql):
        yield sql[end : match.start()], True
        yield match.group(), False
        end = match.end()
    yield sql[end:], True


def split_statements(sql: str) -> list[str]:
    """Return the statements of a script without semicolons; a comment alone is none."""
    statements: list[str] = []
    text, has_code = "", False
    for piece, is_code in segments(sql):
        parts = piece.split(";") if is_code else [piece]
        for index, part in enumerate(parts):
            if index:
                statements += [text.strip()] if has_code else []
                text, has_code = "", False
            text += part
            has_code |= not part.startswith(("--", "/*")) and bool(part.strip())
    return [*statements, text.strip()] if has_code else statements
