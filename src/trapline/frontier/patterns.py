"""Path patterns of callers: regular expressions, matched in linear time by RE2; see decision 032."""

import re2

from trapline.errors import InvalidInput

MAX_PATTERNS = 1000
MAX_PATTERN_LENGTH = 2000


class Patterns:
    """Several expressions compiled into one: does any of them occur in the text?"""

    def __init__(self, sources: tuple[str, ...]) -> None:
        if len(sources) > MAX_PATTERNS:
            raise InvalidInput(f"At most {MAX_PATTERNS} path patterns can be given.")
        self._sources = sources
        self._each = [_compiled(source) for source in sources]
        # One pass over the text for all of them; a scoped group keeps `(?i)` to its own pattern.
        self._any = _compiled("|".join(f"(?:{source})" for source in sources), combined=True)

    def __bool__(self) -> bool:
        return bool(self._sources)

    def found_in(self, text: str) -> bool:
        # Bytes spare re2 the translation of offsets.
        return bool(self._sources) and self._any.search(text.encode()) is not None

    def first_found(self, text: str) -> str | None:
        encoded = text.encode()
        for source, pattern in zip(self._sources, self._each, strict=True):
            if pattern.search(encoded):
                return source
        return None


def _compiled(source: str, *, combined: bool = False) -> "re2._Regexp":
    if len(source) > MAX_PATTERN_LENGTH and not combined:
        raise InvalidInput(f"A path pattern has at most {MAX_PATTERN_LENGTH} characters.")
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    try:
        return re2.compile(source, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise InvalidInput(_sentence(source, error)) from None


def _sentence(source: str, error: Exception) -> str:
    reason = error.args[0] if error.args else b""
    words = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return (
        f"{source[:100]!r} is not a regular expression that can be used: {words[:200]}."
        " Look-around and back-references are not supported, because their matching time has no bound."
    )
