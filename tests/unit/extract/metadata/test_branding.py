import pytest
import turbohtml

from trapline.errors import InvalidInput
from trapline.extract.html.attributes import AttributeValues, read_attributes
from trapline.extract.html.url_resolution import Resolver
from trapline.extract.metadata.branding import read_branding
from trapline.extract.metadata.colours import colour_in, is_grey, luminance

PAGE = """<html class="no-js"><head><meta name="theme-color" content="#123abc">
<meta property="og:image" content="/og.png"><link rel=icon href=/icon.png>
<link rel=stylesheet href="https://fonts.googleapis.com/css2?family=Inter:wght@400&family=Lora&display=swap">
<style>:root{--color-primary: rgb(200, 30, 40);--bg:#111;--primary-hover:#00ff00}
 body{font-family:"Inter", sans-serif;color:#EEE} h1,h2{font-family:Lora,serif}
 @media print{body{background:#fff}} a{color:hsl(240, 100%, 50%)}</style></head>
<body><header><a href="/"><img class="site-logo" src="/logo.svg" alt="Shop"></a></header></body></html>"""


def branding(markup: str) -> dict[str, object]:
    tree = turbohtml.parse(markup)
    return read_branding(tree, Resolver(tree, "https://shop.example/tools/"))


def test_branding_of_a_page() -> None:
    assert branding(PAGE) == {
        "colorScheme": "dark",
        "logo": "https://shop.example/logo.svg",
        "colors": {
            "primary": "#C81E28",
            "background": "#111111",
            "textPrimary": "#EEEEEE",
            "link": "#0000FF",
        },
        "fonts": [{"family": "Inter"}, {"family": "Lora"}],
        "typography": {"fontFamilies": {"primary": "Inter", "heading": "Lora"}},
        "images": {
            "logo": "https://shop.example/logo.svg",
            "favicon": "https://shop.example/icon.png",
            "ogImage": "https://shop.example/og.png",
        },
    }


def test_the_logo_of_the_organisation_comes_first() -> None:
    data = '<script type="application/ld+json">{"@type":"Organization","logo":{"url":"/own.png"}}</script>'
    assert branding(data + PAGE)["logo"] == "https://shop.example/own.png"


def test_a_bare_page_has_only_a_scheme() -> None:
    assert branding("<p>hi") == {"colorScheme": "light"}


@pytest.mark.parametrize(
    ("text", "colour"),
    [
        ("#abc", "#AABBCC"), ("#aabbccdd", "#AABBCC"), ("rgba(1,2,3,.5)", "#010203"), ("rgb(300 0 0)", "#FF0000"),
        ("hsl(120deg 100% 25%)", "#008000"), ("solid navy 1px", "#000080"), ("#abcde", None), ("var(--x)", None),
    ],
)  # fmt: skip
def test_colours(text: str, colour: str | None) -> None:
    assert colour_in(text) == colour


def test_light_and_grey() -> None:
    assert luminance("#FFFFFF") == pytest.approx(1)
    assert is_grey("#808285")
    assert not is_grey("#4169E1")


def test_attributes_by_selector() -> None:
    tree = turbohtml.parse('<a data-id="1" href=x>a</a><a data-id="2">b</a><a>c</a>')
    assert read_attributes(tree, [("a", "data-id"), ("a[href]", "href"), ("p", "id")]) == (
        AttributeValues("a", "data-id", ("1", "2")),
        AttributeValues("a[href]", "href", ("x",)),
        AttributeValues("p", "id", ()),
    )


def test_what_is_no_selector_is_invalid_input() -> None:
    with pytest.raises(InvalidInput, match="not a CSS selector"):
        read_attributes(turbohtml.parse(""), [("a[", "href")])
