"""The fields of a product and of an article, out of a page's structured data."""

import re
from collections.abc import Callable

from trapline.extract.metadata.items import Item, texts_of
from trapline.extract.metadata.price import currency_in, number_in
from trapline.extract.metadata.structured_data import StructuredData
from trapline.model import Metadata

PRODUCT_TYPES = (
    "Product",
    "ProductGroup",
    "ProductModel",
    "IndividualProduct",
    "Vehicle",
    "Car",
    "Book",
)
ARTICLE_TYPES = (
    "Article", "NewsArticle", "BlogPosting", "TechArticle", "ScholarlyArticle", "Report", "LiveBlogPosting",
    "ReportageNewsArticle", "AnalysisNewsArticle", "OpinionNewsArticle", "ReviewNewsArticle", "SocialMediaPosting",
    "DiscussionForumPosting", "MedicalWebPage",
)  # fmt: skip
_AVAILABILITY = {
    word.lower(): word
    for word in (
        "InStock", "OutOfStock", "PreOrder", "BackOrder", "Discontinued", "InStoreOnly", "LimitedAvailability",
        "OnlineOnly", "PreSale", "SoldOut", "MadeToOrder",
    )
}  # fmt: skip
_MAX_VARIANTS = 200

Fields = dict[str, object]


def product_fields(structured: StructuredData) -> Fields | None:
    """Name, price and so on of the product that a page sells; None if it describes none.

    Each field comes from the first item that has it, so that syntaxes complete each other.
    """
    return _merged(structured.of_type(*PRODUCT_TYPES), _product)


def article_fields(structured: StructuredData, metadata: Metadata) -> Fields | None:
    """Headline, author and dates of the article that a page is; None if it describes none."""
    found = _merged(structured.of_type(*ARTICLE_TYPES), _article)
    if found is None:
        return None
    declared = {
        "headline": metadata.headline or metadata.title,
        "description": metadata.description,
        "author": metadata.author,
        "datePublished": metadata.published,
        "dateModified": metadata.modified,
    }
    return {**{name: value for name, value in declared.items() if value}, **found}


def _merged(items: tuple[Item, ...], read: Callable[[Item], Fields]) -> Fields | None:
    if not items:
        return None
    found: Fields = {}
    for item in items:
        for name, value in read(item).items():
            if value not in (None, (), [], {}):
                found.setdefault(name, value)
    return found


def _product(item: Item, *, is_variant: bool = False) -> Fields:
    # Variants of variants are not followed: a circle of them would not end.
    related = () if is_variant else item.items("hasVariant")[:_MAX_VARIANTS]
    variants = [_product(variant, is_variant=True) for variant in related]
    offered = next((o for o in (_offer(item), *map(_offer, related)) if o["price"]), _offer(item))
    return {
        "name": item.text("name"),
        "description": item.text("description"),
        "brand": item.text("brand", "manufacturer"),
        "sku": item.text("sku", "mpn", "productID", "gtin13", "gtin", "isbn"),
        "category": item.text("category"),
        **offered,
        "rating": _rating(item),
        "images": list(texts_of(item.values("image", "photo"))),
        "url": item.text("url"),
        "variants": [{k: v for k, v in variant.items() if v} for variant in variants],
    }


def _offer(item: Item) -> Fields:
    """Price, currency and availability: of the first offer that has a price."""
    offers = [offer for outer in item.items("offers") for offer in (outer, *outer.items("offers"))]
    offers += [spec for offer in offers for spec in offer.items("priceSpecification")]
    priced = next((offer for offer in offers if offer.text("price", "lowPrice")), None)
    price = priced.text("price", "lowPrice") if priced else None
    high = priced.text("highPrice") if priced else None
    available = next((text for offer in offers if (text := offer.text("availability"))), None)
    currencies = (offer.text("priceCurrency") for offer in offers)
    return {
        "price": number_in(price) if price else None,
        "highPrice": number_in(high) if high else None,
        "currency": next(filter(None, currencies), None) or (currency_in(price) if price else None),
        "availability": _availability(available) if available else None,
    }


def _availability(text: str) -> str:
    """The schema.org word, also for `https://schema.org/InStock`, `instock` and `in stock`."""
    word = text.rstrip("/").rpartition("/")[2]
    return _AVAILABILITY.get(re.sub(r"[\s_-]", "", word).lower(), word)


def _rating(item: Item) -> Fields | None:
    ratings = item.items("aggregateRating")
    value = ratings[0].text("ratingValue") if ratings else None
    if value is None:
        return None
    count = ratings[0].text("reviewCount", "ratingCount")
    best = ratings[0].text("bestRating")
    found = {
        "value": number_in(value),
        "count": number_in(count or ""),
        "best": number_in(best or ""),
    }
    found["count"] = int(found["count"]) if found["count"] is not None else None
    return {name: number for name, number in found.items() if number is not None}


def _article(item: Item) -> Fields:
    return {
        "headline": item.text("headline", "name"),
        "description": item.text("description", "abstract"),
        "author": ", ".join(texts_of(item.values("author", "creator"))) or None,
        "publisher": item.text("publisher"),
        "datePublished": item.text("datePublished", "dateCreated"),
        "dateModified": item.text("dateModified"),
        "section": item.text("articleSection"),
        "keywords": list(texts_of(item.values("keywords"))),
        "images": list(texts_of(item.values("image", "thumbnailUrl"))),
        "language": item.text("inLanguage"),
        "url": item.text("url", "mainEntityOfPage"),
    }
