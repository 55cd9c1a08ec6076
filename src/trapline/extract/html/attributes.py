"""Attribute values by CSS selector, as a caller asks for them."""

from collections.abc import Iterable
from dataclasses import dataclass

import turbohtml

from trapline.errors import InvalidInput

_MAX_VALUES = 10_000


@dataclass(frozen=True, slots=True)
class AttributeValues:
    """The values of one attribute on all elements that a selector finds, in page order."""

    selector: str
    attribute: str
    values: tuple[str, ...]


def read_attributes(
    tree: turbohtml.Document, wanted: Iterable[tuple[str, str]]
) -> tuple[AttributeValues, ...]:
    """Read some (selector, attribute) pairs. Raises InvalidInput for what is no selector."""
    return tuple(AttributeValues(s, a, _values(tree, s, a)) for s, a in wanted)


def _values(tree: turbohtml.Document, selector: str, attribute: str) -> tuple[str, ...]:
    try:
        elements = tree.select(selector)
    except turbohtml.SelectorSyntaxError as error:
        raise InvalidInput(f"{selector!r} is not a CSS selector: {error}") from error
    found = (element.attr(attribute) for element in elements[:_MAX_VALUES])
    return tuple(value for value in found if value is not None)
