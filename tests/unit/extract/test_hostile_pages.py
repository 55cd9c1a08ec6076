"""Pages made to hang or crash a reader. Each once took quadratic time, or could have."""

import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.extract.html.images import read_images
from trapline.extract.html.links import read_links
from trapline.extract.html.url_resolution import Resolver
from trapline.extract.metadata.branding import read_branding
from trapline.extract.metadata.fields import article_fields, product_fields
from trapline.extract.metadata.page_metadata import describe_text, read_metadata
from trapline.extract.metadata.structured_data import read_structured
from trapline.extract.summary import summarise
from trapline.model import Metadata

LD = '<script type="application/ld+json">'
PAGES = {
    "deep": "<div>" * 10_000 + "<a href=/x>y</a>",
    "anchors in anchors": "<a href=/x><object>" * 50_000 + "text",
    "landmarks in landmarks": "<header><article>" * 20_000
    + "<section>" * 5_000
    + "<header>" * 5_000,
    "items in items": "<div itemscope itemprop=x>" * 20_000,
    "resources in resources": "<div typeof=x property=y>" * 20_000,
    "many links": '<a href="/p?q=1&z=%20é">x</a>' * 50_000,
    "many rules": "<style>"
    + ".a{display:none}" * 50_000
    + "</style>"
    + "<a href=x class=a>y</a>" * 5_000,
    "rules without braces": "<style>" + "display:none " * 50_000 + "</style><a href=x>y</a>",
    "values of one tag": "".join(f"<meta name=a content={n}>" for n in range(20_000)),
    "headline in the deep": "<div>" * 3_000 + "<h1>" + "x " * 50_000,
    "many bylines": "<div><h1>t</h1>" + "<p class=author>By me</p>" * 20_000 + "<time>" * 20_000,
    "many blocks": f'{LD}{{"@type":"Product","name":"x"}}</script>' * 10_000,
    "deep JSON": LD + '{"a":' * 50_000 + "1" + "}" * 50_000 + "</script>",
    "open comments": LD + '{"a":"b",/*' * 50_000 + "</script>",
    "open strings": LD + "{" + '"' * 200_000 + "</script>",
    "many sources": '<img srcset="' + "a 1x, " * 100_000 + '">' + "<img src=a.png>" * 20_000,
    "null bytes": '\x00<a href="\x00x">\x00' * 1_000,
    "open variables": "<style>" + "--primary:#" * 50_000 + "</style>",
    "no words": "<p>" + "." * 200_000,
}


def everything(markup: str) -> Metadata:
    tree = turbohtml.parse(markup, positions=False)
    resolver = Resolver(tree, "https://x.example/a")
    metadata = read_metadata(tree, resolver)
    structured = read_structured(tree, resolver.page)
    structured.as_json()
    product_fields(structured)
    article_fields(structured, metadata)
    read_links(tree, resolver)
    read_images(tree, resolver)
    read_branding(tree, resolver, metadata)
    text = tree.text
    summarise(text)
    return describe_text(metadata, text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", PAGES)
def test_a_hostile_page_is_read(name: str) -> None:
    assert isinstance(everything(PAGES[name]), Metadata)


FRAGMENTS = st.sampled_from(
    [
        "<a href=", "'//x", "</a>", "<base href=//", ">", "<meta name=", "content='", "'", '"', "<script type=application/ld+json>",
        '{"@graph":[', '{"@type":"Product","offers":', "]}", "</script>", "<div itemscope itemprop=x itemtype=", "<svg><title>",
        "<style>a{display:none", "}</style>", "<template>", "<h1>By ", "<time datetime=", "2024-05-17", "é\ud7ff", "\x00", "<img srcset='",
        " 2x,", "<html lang=", "http://[", "&#0;", "<!--", "-->", "<frameset>", "<table><a href=x>", "<link rel=canonical href=",
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(FRAGMENTS | st.text(max_size=8), max_size=30).map("".join))
def test_any_markup_is_read(markup: str) -> None:
    assert isinstance(everything(markup), Metadata)
