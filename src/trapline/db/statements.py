"""SQL text cut where it may be cut: never inside a string, a name, a comment or a $body$."""

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
    """Yield the text in order, piece by piece, each with whether it is plain code."""
    end = 0
    for match in _OPAQUE.finditer(sql):
        yield sql[end : match.start()], True
        yield match.group(), False
        end = match.end()
    yield sql[end:], True


def split(sql: str) -> list[str]:
    """Return the statements of a script, without their semicolons; a mere comment is none."""
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
