import pytest
import turbohtml

from trapline.extract.html.url_resolution import Resolver
from trapline.extract.metadata.dates import date_in_url, iso_date
from trapline.extract.metadata.language import declared_language, detected_language
from trapline.extract.metadata.page_metadata import (
    count_words,
    describe_text,
    read_metadata,
    robots_directives,
)
from trapline.model import Metadata

URL = "https://news.example/2024/05/17/foxes"


def metadata(head: str, body: str = "", url: str = URL) -> Metadata:
    tree = turbohtml.parse(f"<html lang=en-GB><head>{head}</head><body>{body}</body></html>")
    return read_metadata(tree, Resolver(tree, url))


FULL = """
<title> Foxes
  return </title>
<meta name=description content="They are back."><meta name=keywords content="fox, city;fox , night">
<meta name=robots content="noindex, Follow"><meta name=ROBOTS content=none>
<meta property="og:title" content="Foxes!"><meta property="og:description" content="d">
<meta property="og:url" content="https://news.example/f"><meta property="og:image" content="/i.jpg">
<meta property="og:audio" content="a"><meta property="og:determiner" content="the">
<meta property="og:locale" content="en_GB"><meta property="og:site_name" content="The News">
<meta property="og:locale:alternate" content="de_DE"><meta property="og:locale:alternate" content="fr_FR">
<meta property="og:video" content="v">
<meta name="DC.date.created" content="2024-05-01"><meta name="DC.date" content="2024-05-02">
<meta name="dcterms.created" content="c"><meta name="DC.type" content="Text">
<meta name="dcterms.type" content="T"><meta name="dcterms.audience" content="all">
<meta name="dcterms.subject" content="s"><meta name="DC.subject" content="S">
<meta name="DC.description" content="D"><meta name="dcterms.keywords" content="k">
<meta property="article:published_time" content="2024-05-17T08:30:00+02:00">
<meta property="article:modified_time" content="2024-05-18">
<meta property="article:section" content="Nature"><meta property="article:tag" content="fox">
<meta property="article:tag" content="city"><meta name=author content="Ada Trapper">
<meta name="custom" content="one"><meta name="custom" content="two"><meta name="theme-color" content="#fff">
<link rel="shortcut icon" href=/f.ico><link rel=canonical href="/2024/foxes?x=1">
<link rel=alternate type="application/rss+xml" href=/rss><link rel=alternate hreflang=de href=/de/>
<link rel=alternate hreflang=x-default href=/>"""


def test_the_names_that_firecrawl_clients_know() -> None:
    declared = metadata(FULL).declared
    expected = {
        "ogTitle": "Foxes!",
        "ogDescription": "d",
        "ogUrl": "https://news.example/f",
        "ogImage": "/i.jpg",
        "ogAudio": "a",
        "ogDeterminer": "the",
        "ogLocale": "en_GB",
        "ogLocaleAlternate": ("de_DE", "fr_FR"),
        "ogSiteName": "The News",
        "ogVideo": "v",
        "dcDateCreated": "2024-05-01",
        "dcDate": "2024-05-02",
        "dcTermsCreated": "c",
        "dcType": "Text",
        "dcTermsType": "T",
        "dcTermsAudience": "all",
        "dcTermsSubject": "s",
        "dcSubject": "S",
        "dcDescription": "D",
        "dcTermsKeywords": "k",
        "publishedTime": "2024-05-17T08:30:00+02:00",
        "modifiedTime": "2024-05-18",
        "articleSection": "Nature",
        "articleTag": "fox",
    }
    assert {name: declared.get(name) for name in expected} == expected


def test_every_tag_is_kept_under_its_own_name() -> None:
    declared = metadata(FULL).declared
    assert declared["og:title"] == "Foxes!"
    assert declared["custom"] == ("one", "two")
    assert declared["article:tag"] == ("fox", "city")
    assert declared["theme-color"] == "#fff"


def test_the_fields() -> None:
    found = metadata(FULL)
    assert found.title == "Foxes return"
    assert found.description == "They are back."
    assert found.language == "en-GB"
    assert found.keywords == ("fox", "city", "night")
    assert found.robots == "noindex, Follow"
    assert found.author == "Ada Trapper"
    assert found.published == "2024-05-17T08:30:00+02:00"
    assert found.modified == "2024-05-18"
    assert found.canonical == "https://news.example/2024/foxes?x=1"
    assert found.favicon == "https://news.example/f.ico"
    assert found.site_name == "The News"
    assert found.feeds == ("https://news.example/rss",)
    assert found.alternates == (
        ("de", "https://news.example/de/"),
        ("x-default", "https://news.example/"),
    )


def test_a_page_that_says_nothing() -> None:
    found = read_metadata(tree := turbohtml.parse(""), Resolver(tree, ""))
    assert found == Metadata(declared={})


def test_a_title_in_a_drawing_is_not_the_pages() -> None:
    assert metadata("", "<svg><title>icon</title></svg><h1>Real</h1>").title == "Real"


@pytest.mark.parametrize(
    ("head", "body", "headline"),
    [
        ("<title>Foxes return - The News</title>", "<h1>Foxes return</h1>", "Foxes return"),
        ("<title>Foxes return | The News</title>", "", "Foxes return"),
        ("<title>Foxes return - The News</title>", "<h1>The News</h1>", "Foxes return"),
        ("<title>Foxes: back in town</title>", "<h1>Cookies</h1>", "Foxes: back in town"),
        (
            "<title>Foxes return - The News</title>",
            "<h1>Subscribe</h1><h1>The foxes return <a href=#f>¶</a></h1>",
            "The foxes return",
        ),
        (
            '<title>The News - Foxes</title><meta property="og:site_name" content="The News">',
            "",
            "Foxes",
        ),
        ('<title>Old</title><meta property="og:title" content="Foxes return">', "", "Foxes return"),
        ("", "<h1></h1><h1>Foxes</h1>", "Foxes"),
        ("", "", None),
    ],
)
def test_the_headline_is_the_title_without_the_site(
    head: str, body: str, headline: str | None
) -> None:
    assert metadata(head, body).headline == headline


GRAPH = """<script type="application/ld+json">{"@context":"https://schema.org","@graph":[
 {"@type":"WebPage","datePublished":"2020-01-01"},
 {"@type":["NewsArticle"],"datePublished":"2024-02-03T04:05:06Z","dateModified":"2024-02-04",
  "author":[{"@id":"#ada"},{"@type":"Person","name":"Bo Hunter"}]},
 {"@id":"#ada","@type":"Person","name":"Ada Trapper"}]}</script>"""


def test_author_and_dates_from_json_ld() -> None:
    found = metadata(GRAPH)
    assert found.author == "Ada Trapper, Bo Hunter"
    assert (found.published, found.modified) == ("2024-02-03T04:05:06Z", "2024-02-04")


@pytest.mark.parametrize(
    ("body", "author", "published"),
    [
        (
            "<article><h1>T</h1><p>By Ada Trapper</p><p>May 17, 2023</p></article>",
            "Ada Trapper",
            "2023-05-17",
        ),
        (
            "<h1>T</h1><span itemprop=author>Bo</span><time pubdate datetime=2022-01-02>",
            "Bo",
            "2022-01-02",
        ),
        (
            "<p class=byline>Written by Cy Young</p><main><time>3 March 2021</time></main>",
            "Cy Young",
            "2021-03-03",
        ),
        ("<a rel=author href=/x>@handle</a><p>text</p>", None, "2024-05-17"),
        ("<p>In <a href=/author/di-lane>Di Lane</a>'s view</p>", "Di Lane", "2024-05-17"),
        (
            "<p class=author>Ed Moore<br>4 August 2010</p><p class=post-date>4 August 2010</p>",
            "Ed Moore",
            "2010-08-04",
        ),
        (
            "<abbr itemprop=datePublished title=2019-12-01>last winter</abbr>",
            None,
            "2019-12-01",
        ),
        ("<span itemprop=author>ops@news.example</span>", None, "2024-05-17"),
    ],
)
def test_author_and_date_from_the_page_itself(
    body: str, author: str | None, published: str
) -> None:
    found = metadata("", body)
    assert (found.author, found.published) == (author, published)


def test_a_person_is_named_before_the_site_that_publishes_them() -> None:
    head = (
        """<meta name=author content="The News"><meta property="og:site_name" content="the news">"""
    )
    body = "<article><h1>T</h1><p>By Ada Trapper</p></article>"
    assert metadata(head, body).author == "Ada Trapper"
    assert metadata(head, "<article><h1>T</h1></article>").author == "The News"


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2024 May 17", "2024-05-17"),
        ("2024-05-17", "2024-05-17"),
        ("2024-5-7 8:03", "2024-05-07T08:03:00"),
        ("Fri, 17 May 2024 10:00:00 GMT", "2024-05-17"),
        ("20240517", "2024-05-17"),
        ("1715934600", "2024-05-17T08:30:00Z"),
        ("17.05.2024", "2024-05-17"),
        ("05/17/2024", "2024-05-17"),
        ("17/05/2024", "2024-05-17"),
        ("2024/05/17", "2024-05-17"),
        ("17. Mai 2024", "2024-05-17"),
        ("17 de mayo de 2024", "2024-05-17"),
        ("Sept. 3rd, 2024", "2024-09-03"),
        ("2024-13-45", None),
        ("1234\u00b2\u00b2\u00b2\u00b2\u00b2\u00b2", None),
        ("0000-00-00", None),
        ("soon", None),
        ("", None),
    ],
)
def test_dates_as_people_write_them(text: str, date: str | None) -> None:
    assert iso_date(text) == date


def test_dates_in_urls() -> None:
    assert date_in_url("https://a.example/2024/05/17/x") == "2024-05-17"
    assert date_in_url("https://a.example/2024-05-17-x") == "2024-05-17"
    assert date_in_url("https://a.example/v/2024/05/") is None


def test_robots_directives() -> None:
    assert robots_directives("NoIndex, max-snippet:-1") == {"noindex", "max-snippet:-1"}
    assert robots_directives("none") == {"none", "noindex", "nofollow"}
    assert robots_directives(None) == frozenset()


def test_language_tags() -> None:
    assert declared_language(None, "", "en_US.utf8", "de") == "en-US"
    assert declared_language("%lang%") is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (
            "Der schnelle braune Fuchs springt über den faulen Hund und läuft dann in den Wald.",
            "de",
        ),
        (
            "Le renard brun rapide saute par-dessus le chien paresseux, puis il court dans la forêt.",
            "fr",
        ),
        ("The quick brown fox jumps over the lazy dog and then it runs into the dark woods.", "en"),
        (
            "敏捷的棕色狐狸跳过了懒狗、然后跑进了树林里面、它在那里找到了很多吃的东西、非常高兴地过了一天。",
            "zh",
        ),
        ("Быстрая коричневая лиса перепрыгивает через ленивую собаку и убегает в лес.", "ru"),
        ("short", None),
        ("", None),
    ],
)
def test_language_detection(text: str, language: str | None) -> None:
    assert detected_language(text) == language


def test_reading_length() -> None:
    described = describe_text(Metadata(), "word " * 441)
    assert (described.words, described.reading_minutes) == (441, 3)
    assert describe_text(Metadata(language="xx"), "word").language == "xx"
    assert count_words("狐狸跳过") == 3
