import turbohtml

from trapline.extract.html.images import largest, read_images
from trapline.extract.html.links import Links, read_links
from trapline.extract.html.url_resolution import Resolver
from trapline.model import Image, Link, Region

URL = "https://shop.example/tools/saws"
PAGE = """
<html><head><style>
  .menu-closed, #promo { display : none } @media print { .screen { display: none } }
  .shown { display: none !important } a.gone{visibility:hidden}
  .tab.idle{display:none} div.gone2{display:none} .tab .idle2{display:none}
</style></head><body>
<header><a href="/">Home</a><nav><a href="/tools">Tools</a></nav></header>
<nav><a href="/about">About</a></nav>
<main><article><header><a href="/tools/saws/rip">Rip <b>saw</b></a></header>
  <p><a href="/tools/saws/rip#reviews">again</a> <a href="saws/panel" rel="NoFollow ugc">Panel</a>
  <a href="mailto:hello@shop.example">Mail</a> <a href="tel:+123">Call</a>
  <a href="javascript:void(0)">Nothing</a> <a href="#top">Top</a> <a>none</a>
  <a class="screen" href="/print">Print</a></p>
  <a href="/pictured"><img src="x.png" alt="A picture"></a>
  <a href="/labelled" aria-label="A label"></a>
</article></main>
<div hidden><a href="/hidden-attribute">h</a></div>
<div style="color:red; display:none"><p><a href="/hidden-style">h</a></p></div>
<div style="display:block"><a href="/shown-style">h</a></div>
<span aria-hidden="true"><a href="/hidden-aria">h</a></span>
<ul class="x menu-closed"><li><a href="/hidden-class">h</a></ul>
<div id="promo"><a href="/hidden-id">h</a></div>
<a class="gone" href="/hidden-visibility">h</a>
<div class="idle tab"><a href="/hidden-classes">h</a></div>
<div class="tab"><a class="idle2 gone2" href="/shown-class">h</a></div>
<template><a href="/in-template">h</a></template>
<footer><a href="/imprint">Imprint</a></footer>
<div role="contentinfo"><a href="/terms">Terms</a></div>
</body></html>"""


def links(markup: str = PAGE, url: str = URL) -> Links:
    tree = turbohtml.parse(markup)
    return read_links(tree, Resolver(tree, url))


def by_path(found: Links) -> dict[str, Link]:
    return {link.url.removeprefix("https://shop.example"): link for link in found.on_page}


def test_links_are_absolute_and_once_in_the_order_of_the_page() -> None:
    urls = [link.url for link in links().on_page]
    assert urls[:5] == [
        "https://shop.example/",
        "https://shop.example/tools",
        "https://shop.example/about",
        "https://shop.example/tools/saws/rip",
        "https://shop.example/tools/saws/panel",
    ]
    assert len(urls) == len(set(urls))


def test_each_link_has_its_text_and_rel() -> None:
    found = by_path(links())
    assert found["/tools/saws/rip"].text == "Rip saw"
    assert found["/pictured"].text == "A picture"
    assert found["/labelled"].text == "A label"
    assert found["/tools/saws/panel"].rel == ("nofollow", "ugc")


def test_each_link_has_its_region() -> None:
    found = by_path(links())
    assert found["/"].region is Region.HEADER
    assert found["/tools"].region is Region.HEADER
    assert found["/about"].region is Region.NAV
    assert found["/tools/saws/rip"].region is Region.BODY
    assert found["/imprint"].region is Region.FOOTER
    assert found["/terms"].region is Region.FOOTER


def test_hidden_links_are_marked() -> None:
    hidden = {path for path, link in by_path(links()).items() if link.hidden}
    assert hidden == {
        "/hidden-attribute",
        "/hidden-style",
        "/hidden-aria",
        "/hidden-class",
        "/hidden-classes",
        "/hidden-id",
        "/hidden-visibility",
    }


def test_what_stands_in_a_template_is_not_on_the_page() -> None:
    assert "/in-template" not in by_path(links())


def test_other_schemes_are_kept_apart() -> None:
    assert links().other == ("mailto:hello@shop.example", "tel:+123")


def test_a_shown_link_wins_over_a_hidden_one_to_the_same_page() -> None:
    found = links("<p hidden><a href=/x>secret</a></p><a href=/x></a><a href=/x>open</a>")
    assert found.on_page == (
        Link("https://shop.example/x", "secret", (), Region.BODY, hidden=False),
    )


def test_deeply_nested_landmarks_and_hidden_parts_take_linear_work() -> None:
    deep = "<nav hidden>" * 3000 + "<a href=/x>x</a>" * 3000
    assert links(deep).on_page[0].region is Region.NAV


def test_images_are_the_largest_of_their_sources() -> None:
    tree = turbohtml.parse("""
      <meta property="og:image" content="/social.jpg">
      <img src="data:image/gif;base64,R0" data-src="/lazy.jpg" alt=" A  saw ">
      <img src="/s.jpg" srcset="/m.jpg 640w, /l,arge.jpg 1280w, /s.jpg 320w">
      <picture><source srcset="/p1.webp 1x, /p2.webp 2x"><img src="/p.jpg"></picture>
      <img src="/pixel.gif" width="1" height="1"><video poster="/poster.jpg"></video>
      <img src="data:image/png;base64,AAAA"><img src="/lazy.jpg">""")
    assert read_images(tree, Resolver(tree, URL)) == (
        Image("https://shop.example/social.jpg"),
        Image("https://shop.example/lazy.jpg", "A saw"),
        Image("https://shop.example/l,arge.jpg"),
        Image("https://shop.example/p2.webp"),
        Image("https://shop.example/p.jpg"),
        Image("https://shop.example/poster.jpg"),
    )


def test_srcset_in_any_shape() -> None:
    assert largest("a.jpg") == "a.jpg"
    assert largest("a.jpg, b.jpg 2x,c.jpg 1.5x") == "b.jpg"
    assert largest(", ,a.jpg 100w,") == "a.jpg"
    assert largest("") == ""
    assert largest("," * 20_000) == ""
