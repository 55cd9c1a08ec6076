import json

import pytest
import turbohtml

from trapline.extract.metadata import jsonld
from trapline.extract.metadata.fields import article_fields, product_fields
from trapline.extract.metadata.price import currency_in, number_in
from trapline.extract.metadata.schema_fill import fill
from trapline.extract.metadata.structured_data import StructuredData, read_structured
from trapline.model import Metadata

URL = "https://shop.example/saw"


def script(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f'<script type="application/ld+json">{text}</script>'


def structured(markup: str) -> StructuredData:
    return read_structured(turbohtml.parse(markup), URL)


PRODUCT = {
    "@context": "https://schema.org",
    "@type": "Product",
    "name": "Rip saw",
    "image": [
        "https://shop.example/1.jpg",
        {"@type": "ImageObject", "url": "https://shop.example/2.jpg"},
    ],
    "description": "Cuts along\n the grain.",
    "sku": 4711,
    "brand": {"@type": "Brand", "name": "Sägewerk"},
    "offers": {
        "@type": "Offer",
        "price": "1.299,50",
        "priceCurrency": "EUR",
        "availability": "https://schema.org/InStock",
    },
    "aggregateRating": {"@type": "AggregateRating", "ratingValue": "4.5", "reviewCount": "12"},
}
MICRODATA = """<div itemscope itemtype="https://schema.org/Product"><h1 itemprop=name>Hammer</h1>
 <div itemprop=offers itemscope itemtype="http://schema.org/Offer"><span itemprop=price content=12.5>12,50 €</span>
 <meta itemprop=priceCurrency content=EUR><link itemprop=availability href="https://schema.org/OutOfStock"></div></div>"""
OPEN_GRAPH = """<meta property="og:type" content="product"><meta property="og:title" content="Axe">
 <meta property="product:price:amount" content="20.00">
 <meta property="product:price:currency" content="USD">"""
RDFA = """<div vocab="https://schema.org/" typeof="Product"><span property="name">Plane</span>
 <div property="offers" typeof="Offer"><span property="price">30</span></div></div>"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('<!-- {"a": 1} -->', {"a": 1}),
        ('//<![CDATA[\n{"a": 1}\n//]]>', {"a": 1}),
        ('{"a": "http://x//y", /* why */ "b": [1,2,],}', {"a": "http://x//y", "b": [1, 2]}),
        ('{"a": "line\nbreak\ttab"};', {"a": "line\nbreak\ttab"}),
        ('{"a": 1} {"b": 2}', {"a": 1}),
        ('{"a": ', None),
        ("[" * 100_000, None),
        ("", None),
    ],
)
def test_json_that_is_not_quite(text: str, value: object) -> None:
    assert jsonld.decode(text) == value


def test_graphs_and_arrays_are_laid_flat() -> None:
    nested = [
        {"@graph": [{"@type": "A"}, [{"@type": "schema:B"}]]},
        {"@type": "http://schema.org/C"},
    ]
    assert [item.types for item in structured(script(nested)).items] == [("A",), ("B",), ("C",)]


def test_references_are_followed_and_circles_end() -> None:
    graph = {
        "@graph": [
            {"@id": "#a", "@type": "Article", "author": {"@id": "#p"}},
            {"@id": "#p", "@type": "Person", "name": "Ada", "knows": {"@id": "#a"}},
        ]
    }
    article = structured(script(graph)).of_type("Article")[0]
    person = article.items("author")[0]
    assert (person.text("name"), person.values("knows")) == ("Ada", ("#a",))


def test_a_web_of_references_is_bounded() -> None:
    nodes = [
        {"@id": f"#{n}", "@type": "Thing", "to": [{"@id": f"#{m}"} for m in range(12)]}
        for n in range(12)
    ]
    assert len(structured(script(nodes)).items) == 12


@pytest.mark.parametrize(
    ("markup", "source", "name", "price"),
    [
        (script(PRODUCT), "json-ld", "Rip saw", 1299.5),
        (MICRODATA, "microdata", "Hammer", 12.5),
        (RDFA, "rdfa", "Plane", 30.0),
        (
            OPEN_GRAPH,
            "opengraph",
            "Axe",
            20.0,
        ),
    ],
)
def test_every_syntax_gives_the_same_form(
    markup: str, source: str, name: str, price: float
) -> None:
    found = structured(markup)
    assert found.items[0].source == source
    fields = product_fields(found)
    assert fields is not None
    assert (fields["name"], fields["price"]) == (name, price)


def test_product_fields() -> None:
    assert product_fields(structured(script(PRODUCT))) == {
        "name": "Rip saw",
        "description": "Cuts along the grain.",
        "brand": "Sägewerk",
        "sku": "4711",
        "price": 1299.5,
        "currency": "EUR",
        "availability": "InStock",
        "rating": {"value": 4.5, "count": 12},
        "images": ["https://shop.example/1.jpg", "https://shop.example/2.jpg"],
    }


def test_a_group_of_variants_has_the_price_of_the_first() -> None:
    group = {
        "@type": "ProductGroup",
        "name": "Gloves",
        "hasVariant": [
            {
                "@type": "Product",
                "name": "S",
                "offers": {"@type": "AggregateOffer", "lowPrice": 9, "highPrice": 11},
            },
            {
                "@type": "Product",
                "name": "M",
                "offers": {"price": "$10.00", "availability": "in stock"},
            },
        ],
    }
    fields = product_fields(structured(script(group)))
    assert fields is not None
    assert (fields["price"], fields["highPrice"], len(fields["variants"])) == (9.0, 11.0, 2)  # type: ignore[arg-type]
    assert fields["variants"][1] == {
        "name": "M",
        "price": 10.0,
        "currency": "USD",
        "availability": "InStock",
    }  # type: ignore[index]


def test_a_page_without_a_product_has_no_product_fields() -> None:
    assert product_fields(structured("<p>hi")) is None


def test_article_fields_are_completed_by_the_metadata() -> None:
    found = structured(
        script({"@type": "BlogPosting", "headline": "H", "author": [{"name": "A"}, "B"]})
    )
    fields = article_fields(found, Metadata(title="T", published="2024-05-17"))
    assert fields == {"headline": "H", "author": "A, B", "datePublished": "2024-05-17"}


SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "price": {"type": "number"},
        "in_stock": {"type": "boolean"},
        "reviewCount": {"type": "integer"},
        "image_url": {"type": "string"},
        "images": {"type": "array", "items": {"type": "string"}},
        "brand": {"$ref": "#/$defs/Brand"},
        "rating": {"anyOf": [{"type": "null"}, {"type": "number"}]},
        "currency": {"type": "string", "enum": ["USD", "EUR"]},
        "weather": {"type": "string"},
    },
    "$defs": {"Brand": {"type": "object", "properties": {"name": {"type": "string"}}}},
}


def test_a_schema_is_filled_without_a_model() -> None:
    assert fill(SCHEMA, structured(script(PRODUCT)), Metadata()) == {
        "title": "Rip saw",
        "price": 1299.5,
        "in_stock": True,
        "reviewCount": 12,
        "image_url": "https://shop.example/1.jpg",
        "images": ["https://shop.example/1.jpg", "https://shop.example/2.jpg"],
        "brand": {"name": "Sägewerk"},
        "rating": 4.5,
        "currency": "EUR",
    }


def test_a_list_of_things_is_filled_from_all_of_their_type() -> None:
    jobs = [
        {"@type": "JobPosting", "title": f"Job {n}", "hiringOrganization": {"name": "Us"}}
        for n in (1, 2)
    ]
    schema = {
        "type": "object",
        "properties": {
            "job_postings": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"title": {"type": "string"}, "company": {"type": "string"}},
                },
            }
        },
    }
    assert fill(schema, structured(script(jobs)), Metadata()) == {
        "job_postings": [{"title": "Job 1", "company": "Us"}, {"title": "Job 2", "company": "Us"}]
    }


def test_meta_tags_fill_what_nothing_else_does() -> None:
    schema = {"properties": {"title": {}, "author": {"type": ["string", "null"]}}}
    assert fill(schema, StructuredData(), Metadata(title="T", author="A")) == {
        "title": "T",
        "author": "A",
    }


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"$ref": "#"}
    assert fill(schema, structured(script(PRODUCT)), Metadata()) == {}
    deep = {"type": "object", "properties": {"brand": {"$ref": "#"}, "name": {"type": "string"}}}
    assert fill(deep, structured(script(PRODUCT)), Metadata())["name"] == "Rip saw"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.299,00 €", 1299.0), ("$1,299.00", 1299.0), ("1 299 kr", 1299.0), ("12,5", 12.5), ("1,299", 1299.0),
        ("1.299.000", 1299000.0), ("CHF 1'299.50", 1299.5), ("-3.5", -3.5), ("free", None), ("", None), ("5.", 5.0),
    ],
)  # fmt: skip
def test_numbers_as_shops_write_them(text: str, number: float | None) -> None:
    assert number_in(text) == number


def test_currencies() -> None:
    assert [currency_in(text) for text in ("12 €", "US$ 5", "SEK 5", "5")] == [
        "EUR",
        "USD",
        "SEK",
        None,
    ]
