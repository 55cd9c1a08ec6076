"""CSS selectors of callers: checked, and bounded in cost."""

from collections.abc import Iterable

import turbohtml

from trapline.errors import InvalidInput

LONGEST = 1000
MOST_PSEUDO_CLASSES = 10


def check_selectors(selectors: Iterable[str]) -> None:
    """Refuse invalid selectors, and those whose cost on a page has no useful bound."""
    page = turbohtml.parse("<p>")
    for selector in selectors:
        _check_cost(selector)
        try:
            page.select(selector)
        except turbohtml.SelectorSyntaxError as error:
            raise InvalidInput(f"{selector!r} is not a CSS selector: {error}") from None


def _check_cost(selector: str) -> None:
    if len(selector) > LONGEST:
        raise InvalidInput(f"A selector has at most {LONGEST} characters.")
    if selector.count(":") > MOST_PSEUDO_CLASSES:
        raise InvalidInput(f"A selector has at most {MOST_PSEUDO_CLASSES} pseudo-classes.")
    if ":has(" in selector.lower().partition(":has(")[2]:
        # Each level multiplies the cost by the number of elements.
        raise InvalidInput(
            f"{selector!r} has more than one :has(), which takes too long on a page."
        )
