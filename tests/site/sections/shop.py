"""Products with JSON-LD or microdata, and the shelves that collect them."""

from collections.abc import Iterator

from tests.site.compose import compose
from tests.site.content import table
from tests.site.page import Page

SHELVES = {
    "electronics": "Electronics",
    "lenses": "Lenses",
    "instruments": "Instruments",
    "paper": "Paper",
    "bags": "Bags and small things",
}
_SHAPES = (("product_ld", "modern"), ("product_micro", "blog"))


def pages() -> Iterator[Page]:
    products = table("shop")
    for at, product in enumerate(products):
        template, frame = _SHAPES[at % len(_SHAPES)]
        yield compose(
            template,
            f"/shop/p/{product['slug']}",
            kind="product",
            title=product["name"],
            summary=product["text"].partition(".")[0] + ".",
            frame=frame,
            validators=frozenset({"last-modified"}),
            others=[products[(at + step) % len(products)] for step in (1, 5, 9)],
            category_name=SHELVES[product["category"]],
            **{name: product[name] for name in _FIELDS},
        )
    yield from _shelves(products)


_FIELDS = ("price", "sku", "stock", "text", "specs", "reviews", "category")


def _shelves(products: list[dict[str, object]]) -> Iterator[Page]:
    all_of_it = {"": "Shop"} | SHELVES
    for slug, name in all_of_it.items():
        yield compose(
            "collection",
            f"/shop/{slug}/" if slug else "/shop/",
            kind="collection",
            title=name,
            summary="Made at the mill, sent by post."
            if slug
            else "Everything that we make, on one page.",
            categories=SHELVES.items(),
            products=[p for p in products if slug in {"", p["category"]}],
            validators=frozenset({"last-modified"}),
        )
