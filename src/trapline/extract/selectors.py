"""CSS selectors that come from users."""

import turbohtml

from trapline.errors import InvalidInput

LONGEST = 1000


def check_selector(selector: str) -> None:
    """Refuse what is no CSS selector, before it reaches a page."""
    if len(selector) > LONGEST:
        raise InvalidInput(f"A selector has at most {LONGEST} characters.")
    try:
        turbohtml.parse("").select(selector)
    except ValueError as error:
        raise InvalidInput(f"{selector[:100]!r} cannot be used: {error}") from None
