"""What a product's page says in its structured data alone: its scripts would show it.

Elsewhere such descriptions repeat what the page shows, or advertise it: added to every product they
make the text worse (decision 029). So only one that is missing, and says more than all that was found.
"""

from collections.abc import Iterator
from typing import Final

import turbohtml

from trapline.extract.metadata import jsonld

NOTE: Final = "The product's description is taken from the page's structured data."
_PRODUCTS: Final = frozenset({"Product", "ProductGroup", "IndividualProduct"})
_FEWEST_WORDS: Final = 25
_RUN: Final = 4
_SHOWN_BELOW: Final = 0.2
_MAX_LENGTH: Final = 100_000


def structured_description(nodes: list[jsonld.Node], words: int, shown: list[str]) -> str | None:
    """The description of the page's product, if it has more than `words` and is not in `shown`."""
    if not nodes:
        return None
    text = max(_descriptions(nodes), key=len, default="")
    described = text.split()
    if len(described) < max(_FEWEST_WORDS, words + 1):
        return None
    page = " ".join(" ".join(shown).lower().split())
    runs = range(0, len(described) - _RUN + 1, _RUN)
    found = sum(" ".join(described[n : n + _RUN]).lower() in page for n in runs)
    return " ".join(described) if found < _SHOWN_BELOW * len(runs) else None


def _descriptions(nodes: list[jsonld.Node]) -> Iterator[str]:
    for node in nodes:
        for described in (node, node.get("mainEntity")):
            if not isinstance(described, dict) or _PRODUCTS.isdisjoint(jsonld.types_of(described)):
                continue
            text = described.get("description")
            if isinstance(text, str):
                yield _plain(text[:_MAX_LENGTH])


def _plain(text: str) -> str:
    return turbohtml.parse_fragment(text, positions=False).to_text() if "<" in text else text
