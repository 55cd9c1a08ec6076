"""CSS selectors that come from users."""

from collections.abc import Iterable

import turbohtml

from trapline.errors import InvalidInput

LONGEST = 1000


def check_selectors(selectors: Iterable[str]) -> None:
    """Refuse what is no CSS selector, before it reaches a page."""
    page = turbohtml.parse("<p>")
    for selector in selectors:
        if len(selector) > LONGEST:
            raise InvalidInput(f"A selector has at most {LONGEST} characters.")
        try:
            page.select(selector)
        except turbohtml.SelectorSyntaxError as error:
            raise InvalidInput(f"{selector!r} is not a CSS selector: {error}") from None
