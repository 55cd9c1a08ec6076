"""The rules of sitemaps.org, and files that keep none of them."""

import gzip
import tracemalloc
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.frontier.canonical_url import MAX_URL_LENGTH
from trapline.frontier.sitemaps import EntryKind, SitemapEntry, SitemapReader, likely_sitemaps
from trapline.frontier.sitemaps.tag_stream import Scanner, TokenKind

PAGE, SITEMAP = EntryKind.PAGE, EntryKind.SITEMAP

FULL = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
        xmlns:xhtml="http://www.w3.org/1999/xhtml">
  <!-- <url><loc>https://site.test/commented-out</loc></url> -->
  <url>
    <loc> https://site.test/a?x=1&amp;y=&#252; </loc>
    <lastmod>2024-05-06T07:08:09+02:00</lastmod>
    <changefreq>Weekly</changefreq>
    <priority>0.8</priority>
    <image:image><image:loc>https://site.test/a.png</image:loc></image:image>
    <xhtml:link rel="alternate" hreflang="de" href="https://site.test/de?a&amp;b"/>
    <xhtml:link rel='alternate' hreflang='fr' href='https://site.test/fr'></xhtml:link>
  </url>
  <url><loc><![CDATA[https://site.test/b?<&>]]></loc></url>
</urlset>
"""


def read(body: str | bytes, step: int = 1 << 20, **bounds: int) -> list[SitemapEntry]:
    return read_with_problems(body, step, **bounds)[0]


def read_with_problems(
    body: str | bytes, step: int = 1 << 20, **bounds: int
) -> tuple[list[SitemapEntry], list[str]]:
    raw = body.encode() if isinstance(body, str) else body
    reader = SitemapReader(**bounds)
    entries: list[SitemapEntry] = []
    for at in range(0, len(raw), step):
        entries += reader.feed(raw[at : at + step])
    return entries + reader.close(), reader.problems


def urls(body: str | bytes, **bounds: int) -> list[str]:
    return [entry.url for entry in read(body, **bounds)]


def test_a_page_with_all_that_may_be_said_of_it() -> None:
    first, second = read(FULL)
    assert first == SitemapEntry(
        PAGE,
        "https://site.test/a?x=1&y=ü",
        modified=datetime.fromisoformat("2024-05-06T07:08:09+02:00"),
        priority=0.8,
        changes="weekly",
        alternates=(("de", "https://site.test/de?a&b"), ("fr", "https://site.test/fr")),
    )
    assert second == SitemapEntry(PAGE, "https://site.test/b?<&>")


def test_an_index_names_sitemaps() -> None:
    index = (
        "<sitemapindex><sitemap><loc>https://site.test/1.xml</loc><lastmod>2024-01</lastmod></sitemap>"
        "<sitemap><loc>https://site.test/2.xml.gz</loc></sitemap></sitemapindex>"
    )
    assert read(index) == [
        SitemapEntry(SITEMAP, "https://site.test/1.xml", modified=datetime(2024, 1, 1, tzinfo=UTC)),
        SitemapEntry(SITEMAP, "https://site.test/2.xml.gz"),
    ]


def test_a_text_file_has_one_url_on_a_line() -> None:
    text = "\ufeffhttps://site.test/a\r\n\n  HTTPS://site.test/b  \nnot a url\nhttps://site.test/c"
    assert urls(text) == ["https://site.test/a", "HTTPS://site.test/b", "https://site.test/c"]


def test_rss() -> None:
    feed = """<rss version="2.0" xmlns:atom="a"><channel><title>T</title>
      <link>https://site.test/</link><image><url>https://site.test/i.png</url></image>
      <item><title>1</title><link>https://site.test/1</link>
        <atom:link href="https://site.test/feed" rel="self"/>
        <pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate></item>
      <item><guid isPermaLink="true">https://site.test/2</guid></item>
      <item><guid isPermaLink="false">tag:2</guid></item>
    </channel></rss>"""
    assert read(feed) == [
        SitemapEntry(
            PAGE, "https://site.test/1", modified=datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
        ),
        SitemapEntry(PAGE, "https://site.test/2"),
    ]


def test_atom() -> None:
    feed = """<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://site.test/"/>
      <entry><id>urn:1</id><link rel="edit" href="https://site.test/edit"/>
        <link rel="alternate" href="https://site.test/1"/>
        <published>2020-01-01T00:00:00Z</published><updated>2024-05-06T00:00:00Z</updated>
        <content><p>text</p><link href="https://site.test/nested"/></content></entry>
      <entry><link href='https://site.test/2'/></entry>
    </feed>"""
    assert read(feed) == [
        SitemapEntry(PAGE, "https://site.test/1", modified=datetime(2024, 5, 6, tzinfo=UTC)),
        SitemapEntry(PAGE, "https://site.test/2"),
    ]


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ("<urlset><url><loc>https://s.test/?a=1&b=2&copy=3</loc></url>", ["https://s.test/?a=1&b=2&copy=3"]),
        ("<urlset><url><loc>https://s.test/1<lastmod>2024</url><url><loc>https://s.test/2</loc>", ["https://s.test/1", "https://s.test/2"]),
        ("<urlset><url><loc>https://s.test/1</loc><url><loc>https://s.test/2</loc></url>", ["https://s.test/1", "https://s.test/2"]),
        ("<urlset><url><loc>https://s.test/a<b</loc></url></urlset>", ["https://s.test/a<b"]),
        ("<urlset><loc>https://s.test/1</loc><loc>https://s.test/2</loc></urlset>", ["https://s.test/1", "https://s.test/2"]),
        ("<sm:urlset><sm:url><sm:loc>https://s.test/1</sm:loc></sm:url></sm:urlset>", ["https://s.test/1"]),
        ("<URLSET><Url><LOC>https://s.test/1</LOC></Url></URLSET>", ["https://s.test/1"]),
        ("<nonsense><url><loc>https://s.test/1</loc></url></nonsense>", ["https://s.test/1"]),
        ("\n\n <?xml version='1.0'?>\n<urlset><url><loc>https://s.test/1</loc></url></urlset>garbage<<<>", ["https://s.test/1"]),
        ("<urlset><url><loc></loc></url><url/><url><lastmod>2024</lastmod></url></urlset>", []),
        ("<urlset><url><loc>https://s.test/1</loc></url><url><loc>https://s.te", ["https://s.test/1"]),
        ("<urlset><url><loc>https://s.test/1</loc><image:image><image:loc>x</url><url><loc>https://s.test/2</loc></url>", ["https://s.test/1", "https://s.test/2"]),
        ("<urlset><url>\n<loc\n>https://s.test/1</loc\n></url></urlset>", ["https://s.test/1"]),
        ("", []),
        ("   ", []),
        ("<", []),
        ("<!", []),
    ],
)  # fmt: skip
def test_what_is_broken_is_read_as_far_as_it_goes(broken: str, expected: list[str]) -> None:
    assert urls(broken) == expected


def test_bad_values_are_left_out() -> None:
    body = "<urlset><url><loc>https://s.test/</loc><lastmod>soon</lastmod><priority>11</priority><changefreq>often</changefreq></url></urlset>"
    assert read(body) == [SitemapEntry(PAGE, "https://s.test/")]
    assert read(body.replace("11", "nan")) == [SitemapEntry(PAGE, "https://s.test/")]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_charsets_by_mark_or_shape(encoding: str) -> None:
    assert read(FULL.encode(encoding)) == read(FULL)


def test_charsets_by_name() -> None:
    latin = FULL.replace("UTF-8", "ISO-8859-1").replace("&#252;", "ü")
    assert read(latin.encode("latin-1")) == read(FULL)
    # A codec that is no charset is not taken, and a wrong octet costs one character.
    assert urls(FULL.replace("UTF-8", "zlib_codec")) == urls(FULL)
    assert len(read(latin.encode("latin-1").replace(b"ISO-8859-1", b"UTF-8"))) == 2


def test_html_is_no_sitemap() -> None:
    entries, problems = read_with_problems("<!doctype html><html><a href='https://s.test/'>x</a></html>")  # fmt: skip
    assert entries == []
    assert "web page" in problems[0]


# Bounds


def test_gzip_whole_in_members_cut_and_damaged() -> None:
    packed = gzip.compress(FULL.encode())
    assert read(packed) == read(FULL)
    assert read(packed, step=3) == read(FULL)
    half = len(FULL) // 2
    members = gzip.compress(FULL[:half].encode()) + gzip.compress(FULL[half:].encode())
    assert read(members + b"trailing garbage") == read(FULL)
    body = long_sitemap(5000)
    packed = gzip.compress(body)
    entries, problems = read_with_problems(packed[: len(packed) // 2])
    assert 0 < len(entries) < 5000
    assert "too early" in problems[0]
    damaged = packed[: len(packed) // 2] + b"\xff" * 200 + packed[len(packed) // 2 + 200 :]
    entries, problems = read_with_problems(damaged)
    assert 0 < len(entries) < 5000
    assert "damaged" in problems[0]


def long_sitemap(count: int) -> bytes:
    items = (b"<url><loc>https://s.test/page-%d</loc></url>" % number for number in range(count))
    return b"<urlset>" + b"".join(items) + b"</urlset>"


def test_the_number_of_entries_is_bounded() -> None:
    entries, problems = read_with_problems(long_sitemap(200), max_entries=50)
    assert [entry.url for entry in entries] == [f"https://s.test/page-{n}" for n in range(50)]
    assert "more entries" in problems[0]
    assert read_with_problems(long_sitemap(50), max_entries=50)[1] == []


def test_the_number_of_bytes_is_bounded() -> None:
    entries, problems = read_with_problems(long_sitemap(200), max_bytes=1000)
    assert 0 < len(entries) < 30
    assert "larger than the limit" in problems[0]


def test_a_gzip_bomb_is_cut_in_flat_memory() -> None:
    bomb = gzip.compress(b"<urlset>" + b" " * 50_000_000)
    tracemalloc.start()
    reader = SitemapReader(max_bytes=20_000_000)
    reader.feed(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reader.done
    assert reader.feed(bomb) == []
    assert peak < 2_000_000


def test_an_entity_bomb_stays_what_it_is() -> None:
    levels = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE x [<!ENTITY a0 "x"><!ENTITY f SYSTEM "file:///etc/passwd">{levels}]><urlset><url><loc>https://s.test/&a9;&f;</loc></url></urlset>'
    assert urls(bomb) == ["https://s.test/&a9;&f;"]


def test_numbers_of_characters_that_are_none() -> None:
    assert urls(
        "<urlset><url><loc>https://s.test/&#0;&#xD800;&#9999999;&#x110000;</loc></url>"
    ) == ["https://s.test/" + "\ufffd" * 4]


@pytest.mark.parametrize(
    "endless",
    [
        b"<urlset><url><loc>" + b"a" * 3_000_000,
        b"<urlset><" + b"a" * 3_000_000,
        b"<urlset>" + b"<" * 300_000,
        b"<urlset><!--" + b"-" * 3_000_000,
        b"<urlset><![CDATA[" + b"]" * 3_000_000,
        b"<!DOCTYPE " + b"a" * 3_000_000,
        b"https://s.test/" + b"a" * 3_000_000,
        b"<urlset>" + b"<url><loc>" * 100_000,
        b"<urlset><url>" + b"<a>" * 500_000,
        b"<urlset><url>" + b'<link href="x" hreflang="y"/>' * 50_000,
        b"&" * 1_000_000,
        b"<urlset>" + b"&" * 1_000_000,
    ],
)
def test_endless_parts_end(endless: bytes) -> None:
    assert all(len(entry.url) <= MAX_URL_LENGTH for entry in read(endless, step=65_536))


def test_usual_places() -> None:
    places = likely_sitemaps("https://site.test:8443/a/b?c")
    assert places[0] == "https://site.test:8443/sitemap.xml"
    assert len(set(places)) == len(places)


@given(st.integers(1, 60))
def test_chunks_do_not_matter(step: int) -> None:
    assert read(FULL, step) == read(FULL)


MARKUP = st.lists(
    st.sampled_from(["<", ">", "/", "url", "loc", "<url>", "</url>", "<loc>", "</loc>", "<urlset>", "<item>", "<link href='x'/>", "&amp;", "&", ";", "#", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>", "<!DOCTYPE", "[", "https://s.test/", " ", "\n", "a", "ü"]),
    max_size=40,
).map("".join)  # fmt: skip


@given(MARKUP, st.integers(1, 7))
def test_no_soup_breaks_it_and_chunks_do_not_matter(soup: str, step: int) -> None:
    assert read(soup, step) == read(soup)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(body: bytes) -> None:
    read(body)
    read(gzip.compress(body)[:-3])


@given(MARKUP, st.integers(1, 7))
def test_tokens_do_not_depend_on_pieces(soup: str, step: int) -> None:
    def tokens(size: int) -> list[tuple[TokenKind, str, str]]:
        scanner = Scanner()
        found: list[tuple[TokenKind, str, str]] = []
        for at in range(0, len(soup), size):
            for kind, name, body in scanner.feed(soup[at : at + size]):
                if found and kind is TokenKind.TEXT and found[-1][0] is TokenKind.TEXT:
                    body = found.pop()[2] + body  # noqa: PLW2901
                found.append((kind, name, body))
        return found

    whole, pieces = tokens(len(soup) or 1), tokens(step)
    # What is unfinished at the end of the file may be told or not; what is finished is the same.
    assert whole[: len(pieces) - 1] == pieces[:-1] or pieces[: len(whole) - 1] == whole[:-1]
