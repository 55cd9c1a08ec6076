"""The attribute scan never misses what a search of the tree would find."""

import pytest
import turbohtml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pure_python import needs_native
from trapline import native
from trapline.extract.html import attribute_scan
from trapline.extract.html.links import read_links
from trapline.extract.html.url_resolution import Resolver
from trapline.extract.markdown import code_blocks
from trapline.extract.metadata import page_type_hints
from trapline.extract.metadata.page_metadata import read_metadata

pytestmark = needs_native

SEARCHES = {
    attribute_scan.DATED: "[itemprop~=datePublished]",
    attribute_scan.CREDITED: "[itemprop~=author]",
    attribute_scan.AUTHOR_RELS: "[rel~=author]",
    attribute_scan.AUTHOR_LINK: "a[href*='/author']",
    attribute_scan.DATE_CLASS: "[class*=date], [class*=publish], [class*=posted]",
    attribute_scan.AUTHOR_CLASS: "[class*=author], [class*=byline], a.username",
    attribute_scan.HIDDEN: "[hidden], [aria-hidden=true], [style*=none], [style*=hidden]",
    attribute_scan.LANDMARK_ROLES: "[role=banner], [role=navigation], [role=contentinfo]",
    attribute_scan.GUTTER_CLASS: code_blocks._GUTTERS,
    attribute_scan.FOOTNOTE: "a[class~=footnote-ref], a[role=doc-noteref], a[rel=footnote]",
    attribute_scan.LANDMARK_ID: "#header, #masthead, #nav, #navigation, #navbar, #menu, #footer, #colophon",
    attribute_scan.TYPED: "[itemtype$=Product]",
}
# Letters of one, two and four bytes: the source is read differently.
WIDTHS = ("", "\u00b6", "\u2014", "\U0001f600")
PRESENT = (
    ("<i itemprop=datePublished>", attribute_scan.DATED),
    ("<i itemprop='x datePublished'>", attribute_scan.DATED),
    ('<i ITEMPROP = \n"datePublished">', attribute_scan.DATED),
    ("<i itemprop=date&#80;ublished>", attribute_scan.DATED),
    ("<i itemprop=author>", attribute_scan.CREDITED),
    ("<a rel='me AUTHOR'>", attribute_scan.AUTHOR_RELS),
    ('<a title="b"rel=author>', attribute_scan.AUTHOR_RELS),
    ("<a/rel=author>", attribute_scan.AUTHOR_RELS),
    ("<a href=/authors/x>", attribute_scan.AUTHOR_LINK),
    ("<a href='x?y=z&sol;author'>", attribute_scan.AUTHOR_LINK),
    ("<a href='x&#x2f;author'>", attribute_scan.AUTHOR_LINK),
    ("<i class=update>", attribute_scan.DATE_CLASS),
    ("<i class='a b-published'>", attribute_scan.DATE_CLASS),
    ('<i class="posted">', attribute_scan.DATE_CLASS),
    ("<i class=" + "x" * 300 + "date>", attribute_scan.DATE_CLASS),
    ("<i class='" + "x" * 3000 + "date'>", attribute_scan.DATE_CLASS),
    ("<i class=authors>", attribute_scan.AUTHOR_CLASS),
    ("<i class='\n\nbyline'>", attribute_scan.AUTHOR_CLASS),
    ("<!doctype html><a class='x username'>", attribute_scan.AUTHOR_CLASS),
    ("<a class=UserName>", attribute_scan.AUTHOR_CLASS),
    ("<i hidden>", attribute_scan.HIDDEN),
    ("<i HIDDEN/>", attribute_scan.HIDDEN),
    ("<i a='b'hidden=''>", attribute_scan.HIDDEN),
    ("<i aria-hidden=true>", attribute_scan.HIDDEN),
    ("<i style='display:none'>", attribute_scan.HIDDEN),
    ("<i role=banner>", attribute_scan.LANDMARK_ROLES),
    ("<i role='navigation'>", attribute_scan.LANDMARK_ROLES),
    ("<i class='x gutter'>", attribute_scan.GUTTER_CLASS),
    ("<i class=LineNos>", attribute_scan.GUTTER_CLASS),
    ("<span class=lineno>", attribute_scan.GUTTER_CLASS),
    ("<span class='line-numbers-rows'>", attribute_scan.GUTTER_CLASS),
    ("<i class='hljs-ln-numbers'>", attribute_scan.GUTTER_CLASS),
    ("<b class=lnt>", attribute_scan.GUTTER_CLASS),
    ("<i class='blob-num x'>", attribute_scan.GUTTER_CLASS),
    ("<i class=&#103;utter>", attribute_scan.GUTTER_CLASS),
    ("<a class='x footnote-ref'>", attribute_scan.FOOTNOTE),
    ("<a role=doc-noteref>", attribute_scan.FOOTNOTE),
    ("<a rel=Footnote>", attribute_scan.FOOTNOTE),
    ("<i id=nav>", attribute_scan.LANDMARK_ID),
    ("<i id='navigation'>", attribute_scan.LANDMARK_ID),
    ("<i id=Footer>", attribute_scan.LANDMARK_ID),
    ("<i id=&#110;av>", attribute_scan.LANDMARK_ID),
    ("<i itemscope ItemType='https://schema.org/Product'>", attribute_scan.TYPED),
)  # fmt: skip


# What may be written as a reference, or is too long, counts as all that the attribute may say.
GUESSED = ("&#", "x" * 300)


@pytest.mark.parametrize(("source", "flag"), PRESENT)
def test_what_is_there_is_seen(source: str, flag: int) -> None:
    """Wherever the source is cut into runs, and whatever else is in it."""
    guessed = any(part in source for part in GUESSED)
    for letter in WIDTHS:
        for before in ("", "x" * 57, "y" * 61, "<p>" * 40):
            for after in (letter, letter + "<p>" * 20):
                page = f"{letter}{before}{source}{after}"
                seen = attribute_scan.scan_attributes(page)
                # What is counted is there once.
                assert seen & flag if guessed else seen == flag & -flag
                assert turbohtml.parse(page).select(SEARCHES[flag]) != []


@pytest.mark.parametrize(
    "source",
    [
        "", "=", "==", " = ", "class", "class=", "class='", "<p>date posted by the author", "dd", "hidde",
        "<i data-class=date>", "<i classes=date>", "<i title=date>", "<i class='d ate'>", "<p>hidden",
        "<a href='?a=1&sort=author'>", "<i id=navy>", "<i id='top nav'>", "<i aria-hidden=false>",
        "<i class=po\u017fted>", "<i hi\u0130den>", "<i overflow:hidden;>", "<i style='color:red'>", "x=" * 99,
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_searched_for(source: str) -> None:
    for letter in WIDTHS:
        # What has many letters after it is read several at a time.
        for after in ("", " <p>" * 20):
            page = f"{letter}{source}{after}"
            assert attribute_scan.scan_attributes(page) == 0
            assert attribute_scan.scan_attributes(page.encode()) == 0


@pytest.mark.parametrize(
    ("source", "counted"),
    [
        ("<link rel=author><a rel='author me'>", 2),
        ("<a rel='author author'><a rel=next>", 1),
        ("<div role=banner><nav role='navigation'><i role=button><p rel=author>", 2),
        ("<i role=contentinfo>" * 254, 254),
        ("<i role=contentinfo>" * 999, 255),
    ],
)
def test_relations_and_roles_are_counted(source: str, counted: int) -> None:
    mark = attribute_scan.LANDMARK_ROLES if "role" in source else attribute_scan.AUTHOR_RELS
    for letter in WIDTHS:
        assert attribute_scan.scan_attributes(source + letter) & mark == counted * (mark & -mark)


COPIED = "<select><button><selectedcontent></selectedcontent></button><option selected>{}</option></select>"
MARKED = (
    "<div role=banner>{0}</div><div role=navigation>{0}</div>{0}",
    "<div role=banner>{0}</div><p role=navigation>{0}</p>",
    "<nav role=contentinfo>{0}</nav><div role=main>{0}</div>",
    "<b role=navigation><p>{0}</b>{0}</p><div role=contentinfo>{0}</div>",
    "<a title='<div class='x' role='navigation'>" + "{0}",
    COPIED.format("<div role=banner>{0}</div>") + "<p role=banner>{0}</p>",
    "<link rel=author><h1>A</h1>{0}",
    "<link rel=author><a rel=author>Anna Bell</a>",
    COPIED.format("<link rel=author>b") + "<a rel=author>Anna Bell</a>",
    "<link rel=author><i itemprop=author>Anna Bell</i>",
)


@pytest.mark.parametrize("body", MARKED)
def test_what_is_counted_is_found_wherever_it_stands(body: str) -> None:
    page = "".join(
        part + (f"<a href='/{number}'>x</a>" if number else "")
        for number, part in enumerate(body.split("{0}"))
    )
    seen = attribute_scan.scan_attributes(page)
    tree = turbohtml.parse(page, positions=False, allow_declarative_shadow_roots=False)
    resolver = Resolver(tree, "https://example.com/")
    assert read_metadata(tree, resolver, attribute_flags=seen) == read_metadata(tree, resolver)
    assert read_links(tree, resolver, attribute_flags=seen) == read_links(tree, resolver)


def test_all_types_that_tell_of_pages_are_seen() -> None:
    for kind in frozenset().union(*page_type_hints.SCHEMA_GROUPS):
        page = f"<p>a</p><i itemscope itemtype='https://schema.org/{kind}'>b"
        seen, tree = attribute_scan.scan_attributes(page), turbohtml.parse(page)
        assert seen == attribute_scan.TYPED
        expected = page_type_hints.read_hints(tree, "https://example.com/")
        assert sum(expected.hints) > sum(
            page_type_hints.read_hints(tree, "https://example.com/", attribute_flags=0).hints
        )
        assert (
            page_type_hints.read_hints(tree, "https://example.com/", attribute_flags=seen)
            == expected
        )


PIECES = st.sampled_from(
    [piece for source, _ in PRESENT for piece in source.partition("=")]
    + ["<", ">", "'", '"', "=", " ", "/", "&", "#", "\n", "\x00", "\r", "\f", "<!--", "-->", "<script>"]
    + ["</script>", "<svg>", "<a ", "<i ", "class", "hidden", "id", "nav", "date", "<template>", "\u2014"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_no_search_finds_what_the_look_did_not_see(source: str) -> None:
    seen = attribute_scan.scan_attributes(source)
    # Bytes are read as text is, but that the end of a long value comes sooner.
    assert attribute_scan.scan_attributes(source.encode()) & seen == seen
    tree = turbohtml.parse(source, positions=False, allow_declarative_shadow_roots=False)
    for flag, selector in SEARCHES.items():
        assert seen & flag or not tree.select(selector), selector
    resolver = Resolver(tree, "https://example.com/")
    assert read_metadata(tree, resolver, attribute_flags=seen) == read_metadata(tree, resolver)
    assert read_links(tree, resolver, attribute_flags=seen) == read_links(tree, resolver)


def test_overlapping_values_are_not_read_to_their_ends() -> None:
    """Without quotes `class=class=…` is one value in another: what is long counts as anything."""
    every_class = (
        attribute_scan.DATE_CLASS
        | attribute_scan.AUTHOR_CLASS
        | attribute_scan.GUTTER_CLASS
        | attribute_scan.FOOTNOTE
    )
    assert attribute_scan.scan_attributes("class=" * 500_000) == every_class
    assert attribute_scan.scan_attributes("class=x " * 500_000) == 0


WORD = ("word",)


@pytest.mark.parametrize(
    "rules",
    [
        [], ("ab",), (("a", WORD, False, 1),), (("x" * 16, WORD, False, 1),), (("ab", ("",), False, 1),),
        (("ab", ("A b",), False, 1),), (("ab", ("\u00e4\u00f6",), False, 1),), (("ab", (1,), False, 1),),
        (("ab", WORD * 17, False, 1),), (("ab", WORD * 9, False, 1), ("ab", WORD * 8, False, 1)),
        tuple((f"a{chr(97 + n)}", WORD, False, 1) for n in range(17)), (("ab", [], False, 1),),
        (("ab", WORD, False),), tuple((f"a{chr(97 + n)}", WORD, False, 3) for n in range(5)),
    ],
)  # fmt: skip
def test_rules_that_do_not_fit_are_refused(rules: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        native.library.seeker(rules)  # type: ignore[arg-type]


def test_only_texts_are_looked_at_and_only_by_seekers() -> None:
    seeker = native.library.seeker((("ab", WORD, False, 1),))
    assert native.library.seek(seeker, "<i ab=word>") == 1
    assert native.library.seek(seeker, b"<i ab=word>") == 1
    for given_ in (
        (seeker, bytearray(b"ab=word")),
        (seeker, None),
        (object(), "ab=word"),
        (seeker,),
        (),
    ):
        with pytest.raises((TypeError, ValueError)):
            native.library.seek(*given_)
