import string

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ExitCode, VisitFailed
from trapline.frontier.canonical_url import (
    MAX_URL_LENGTH,
    Query,
    _resolved,
    _written,
    canonical,
    host_name,
    join_url,
    origin_of,
    similar_key,
    split_url,
    typed_url,
    url_hash,
)

BASE = "http://site.test/one/two/page.html?q=1#part"

ONE_SPELLING = [
    # scheme, host and port
    ("HTTP://Site.TEST/", "http://site.test/"),
    ("http://site.test", "http://site.test/"),
    ("http://site.test:80/", "http://site.test/"),
    ("https://site.test:443/", "https://site.test/"),
    ("http://site.test:443/", "http://site.test:443/"),
    ("http://site.test:/", "http://site.test/"),
    ("http://site.test:0008080/", "http://site.test:8080/"),
    ("http://site.test./a", "http://site.test/a"),
    ("http://site.test.:8080/a", "http://site.test:8080/a"),
    ("http:/site.test/a", "http://site.test/a"),
    ("http:site.test/a", "http://site.test/a"),
    ("http:////site.test/a", "http://site.test/a"),
    ("http:\\\\site.test\\a\\b", "http://site.test/a/b"),
    ("http://:@site.test/", "http://site.test/"),
    # addresses in every spelling
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://0177.0.0.1/", "http://127.0.0.1/"),
    ("http://127.0.0.1./", "http://127.0.0.1/"),
    ("http://%31%32%37.1/", "http://127.0.0.1/"),
    ("http://\uff11\uff12\uff17.0.0.1/", "http://127.0.0.1/"),
    ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
    ("http://[0:0:0:0:0:0:0:1]:8080/", "http://[::1]:8080/"),
    # names beyond ASCII
    ("http://Bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://faß.example/", "http://xn--fa-hia.example/"),
    ("http://日本。test/", "http://xn--wgv71a.test/"),
    ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
    ("http://si\u00adte.test/", "http://site.test/"),
    # white space and controls
    ("  http://site.test/a \n", "http://site.test/a"),
    ("ht\ttp://si\nte.test/a\rb", "http://site.test/ab"),
    ("http://site.test/a b", "http://site.test/a%20b"),
    ("http://site.test/a\x01b", "http://site.test/a%01b"),
    # paths
    ("http://site.test/a/./b/../c", "http://site.test/a/c"),
    ("http://site.test/../../a", "http://site.test/a"),
    ("http://site.test/a/%2e%2E/b", "http://site.test/b"),
    ("http://site.test/a/.%2e", "http://site.test/"),
    ("http://site.test/a/..;/b", "http://site.test/a/..;/b"),
    ("http://site.test/a//b/", "http://site.test/a//b/"),
    ("http://site.test/.well-known/x", "http://site.test/.well-known/x"),
    ("http://site.test/A/b", "http://site.test/A/b"),
    ('http://site.test/"<>`{}', "http://site.test/%22%3C%3E%60%7B%7D"),
    # escapes
    ("http://site.test/%7Euser/%61", "http://site.test/~user/a"),
    ("http://site.test/caf%c3%a9", "http://site.test/caf%C3%A9"),
    ("http://site.test/café", "http://site.test/caf%C3%A9"),
    ("http://site.test/a%2fb", "http://site.test/a%2Fb"),
    ("http://site.test/%252e", "http://site.test/%252e"),
    ("http://site.test/100%", "http://site.test/100%"),
    ("http://site.test/%%34%31%2f", "http://site.test/%%34%31%2F"),
    # queries
    ("http://site.test/?", "http://site.test/"),
    ("http://site.test/?&&a=1&&b=2&", "http://site.test/?a=1&b=2"),
    ("http://site.test/?b=1&a=2", "http://site.test/?b=1&a=2"),
    ("http://site.test/?a='x'", "http://site.test/?a=%27x%27"),
    ("http://site.test/?a=%41+b%20c", "http://site.test/?a=A+b%20c"),
    ("http://site.test/??a", "http://site.test/??a"),
    ("http://site.test/?a=http://b.test/?c", "http://site.test/?a=http://b.test/?c"),
    ("http://site.test/?utm_source=x&id=3&GCLID=y", "http://site.test/?id=3"),
    ("http://site.test/?utm%5Fsource=x", "http://site.test/"),
    ("http://site.test/?fbclid=%&a=%41", "http://site.test/?a=A"),
    ("http://site.test/?utm=1&gclids=2", "http://site.test/?utm=1&gclids=2"),
    # fragments
    ("http://site.test/a#b?c", "http://site.test/a"),
    ("http://site.test/a#!/route", "http://site.test/a"),
]

JOINED = [
    ("", "http://site.test/one/two/page.html?q=1"),
    ("#x", "http://site.test/one/two/page.html?q=1"),
    ("?r=2", "http://site.test/one/two/page.html?r=2"),
    ("next.html", "http://site.test/one/two/next.html"),
    ("next.html#x", "http://site.test/one/two/next.html"),
    ("./next.html", "http://site.test/one/two/next.html"),
    ("../next.html", "http://site.test/one/next.html"),
    ("../../../../next.html", "http://site.test/next.html"),
    ("..", "http://site.test/one/"),
    ("../", "http://site.test/one/"),
    ("..//x", "http://site.test/one//x"),
    ("sub/", "http://site.test/one/two/sub/"),
    ("/", "http://site.test/"),
    ("/root", "http://site.test/root"),
    ("/a//b", "http://site.test/a//b"),
    ("//other.test/x", "http://other.test/x"),
    ("\\\\other.test\\x", "http://other.test/x"),
    ("http:relative", "http://site.test/one/two/relative"),
    ("https:other.test", "https://other.test/"),
    (":x", "http://site.test/one/two/:x"),
    ("a:b@c.test", None),
    (" space ", "http://site.test/one/two/space"),
    ("ünï", "http://site.test/one/two/%C3%BCn%C3%AF"),
]


@pytest.mark.parametrize(("written", "expected"), ONE_SPELLING)
def test_a_url_has_one_spelling(written: str, expected: str) -> None:
    assert canonical(written) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize(("link", "expected"), JOINED)
def test_links_are_resolved_against_their_page(link: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(VisitFailed):
            canonical(link, BASE)
    else:
        assert canonical(link, BASE) == expected


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("", ExitCode.INVALID_URL),
        ("no url", ExitCode.INVALID_URL),
        ("/relative", ExitCode.INVALID_URL),
        ("#part", ExitCode.INVALID_URL),
        ("http://", ExitCode.INVALID_URL),
        ("http://a b/", ExitCode.INVALID_URL),
        ("http://site.test:99999/", ExitCode.INVALID_URL),
        ("http://site.test:port/", ExitCode.INVALID_URL),
        ("http://256.256.256.256/", ExitCode.INVALID_URL),
        ("http://1.2.3.4.5/", ExitCode.INVALID_URL),
        ("http://0xg.1/", ExitCode.INVALID_URL),
        ("http://[::1/", ExitCode.INVALID_URL),
        ("http://[1:2]/", ExitCode.INVALID_URL),
        ("http://a%00b.test/", ExitCode.INVALID_URL),
        ("http://a<b.test/", ExitCode.INVALID_URL),
        ("http://user@site.test/", ExitCode.INVALID_URL),
        ("http://user:word@site.test/", ExitCode.INVALID_URL),
        ("http://site.test@other.test/", ExitCode.INVALID_URL),
        ("http://site..test/", ExitCode.INVALID_URL),
        ("http://.site.test/", ExitCode.INVALID_URL),
        (f"http://{'a' * 64}.test/", ExitCode.INVALID_URL),
        (f"http://{'a.' * 127}test/", ExitCode.INVALID_URL),
        ("http://site.test/\0", ExitCode.INVALID_URL),
        ("http://site.test/\ud800", ExitCode.INVALID_URL),
        ("file:///etc/passwd", ExitCode.UNSUPPORTED_SCHEME),
        ("javascript:alert(1)", ExitCode.UNSUPPORTED_SCHEME),
        ("java\nscript:alert(1)", ExitCode.UNSUPPORTED_SCHEME),
        ("data:text/html,x", ExitCode.UNSUPPORTED_SCHEME),
        ("mailto:a@site.test", ExitCode.UNSUPPORTED_SCHEME),
        ("ftp://site.test/", ExitCode.UNSUPPORTED_SCHEME),
        ("about:blank", ExitCode.UNSUPPORTED_SCHEME),
        (f"http://site.test/{'a' * 65536}", ExitCode.URL_TOO_LONG),
        (f"http://site.test/{'é' * 3000}", ExitCode.URL_TOO_LONG),
    ],
)
def test_what_cannot_be_visited_says_why(written: str, code: ExitCode) -> None:
    with pytest.raises(VisitFailed) as failed:
        canonical(written)
    assert failed.value.code is code
    assert len(failed.value.message) < 200


def test_a_join_is_bounded_too() -> None:
    with pytest.raises(VisitFailed) as failed:
        canonical("a" * 200, f"http://site.test/{'d' * (MAX_URL_LENGTH - 100)}/")
    assert failed.value.code is ExitCode.URL_TOO_LONG


def test_a_base_that_is_no_web_page_is_refused() -> None:
    with pytest.raises(VisitFailed) as failed:
        canonical("x.html", "about:blank")
    assert failed.value.code is ExitCode.UNSUPPORTED_SCHEME


def test_the_query_is_kept_sorted_or_dropped() -> None:
    url = "http://site.test/?b=2&a=2&b=1&utm_medium=x"
    assert canonical(url, query=Query.KEEP) == "http://site.test/?b=2&a=2&b=1"
    assert canonical(url, query=Query.SORT) == "http://site.test/?a=2&b=2&b=1"
    assert canonical(url, query=Query.DROP) == "http://site.test/"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("site.test", "http://site.test/"),
        (" site.test/a?b ", "http://site.test/a?b"),
        ("//site.test/a", "http://site.test/a"),
        ("localhost:8000/x", "http://localhost:8000/x"),
        ("localhost:8000", "http://localhost:8000/"),
        ("https://site.test", "https://site.test/"),
        ("Site.Test/a:1", "http://site.test/a:1"),
    ],
)
def test_what_a_person_types_needs_no_scheme(typed: str, expected: str) -> None:
    assert typed_url(typed) == expected


@pytest.mark.parametrize("typed", ["file:///etc/passwd", "javascript:void(0)", "mailto:a@b.test"])
def test_a_typed_scheme_is_not_overruled(typed: str) -> None:
    with pytest.raises(VisitFailed) as failed:
        typed_url(typed)
    assert failed.value.code is ExitCode.UNSUPPORTED_SCHEME


@pytest.mark.parametrize(
    "typed",
    [
        "ht!tp://site.test/",
        "1http://site.test/",
        "ht tp://site.test/",
        "htétp://site.test/",
        "://site.test/",
        "http//site.test/",
        "https;//site.test/",
        "HTTP//site.test/",
        "http://",
        "https://?q=1",
        "/only/a/path",
        "\\\\only\\a\\path",
        "si te.test",
        "ex!ample.test/",
        "https://site,test/",
        "http://*.site.test/",
        "http://ht!tp://site.test/",
        "",
        "  ",
    ],
)
def test_what_nobody_can_have_meant_is_refused(typed: str) -> None:
    with pytest.raises(VisitFailed) as failed:
        typed_url(typed)
    assert failed.value.code is ExitCode.INVALID_URL


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("http-tools.test/", "http://http-tools.test/"),
        ("https.test//a", "http://https.test//a"),
        ("http:8000/x", "http://http:8000/x"),
        ("under_score.test", "http://under_score.test/"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("münchen.test", "http://xn--mnchen-3ya.test/"),
        ("site.test/a://b", "http://site.test/a://b"),
        ("site.test?u=ht!tp://b", "http://site.test/?u=ht!tp://b"),
    ],
)
def test_odd_but_possible_is_let_through(typed: str, expected: str) -> None:
    assert typed_url(typed) == expected


def test_parts_and_back() -> None:
    url = "https://site.test:8443/a/b?c=d/e"
    assert split_url(url) == ("https", "site.test:8443", "/a/b?c=d/e")
    assert join_url(split_url(url)) == url
    assert host_name("site.test:8443") == "site.test"
    assert host_name("[::1]:8443") == "[::1]"
    assert host_name("[::1]") == "[::1]"


def test_the_hash_is_sha256_of_the_spelling() -> None:
    assert url_hash("http://site.test/").hex().startswith("9d4e272b9076bc08")


def test_similar_urls_share_a_key() -> None:
    variants = [
        f"{scheme}://{www}site.test/docs{end}"
        for scheme in ("http", "https")
        for www in ("", "www.")
        for end in ("", "/", "/index.html", "/index.php", "/default.aspx", "/INDEX.HTM")
    ]
    assert {similar_key(variant) for variant in variants} == {"site.test/docs"}


@pytest.mark.parametrize(
    "other",
    [
        "http://site.test/docs?x=1",
        "http://site.test/Docs",
        "http://docs.site.test/docs",
        "http://site.test:81/docs",
        "http://site.test/docs/indexes.html",
        "http://site.test/docs/index.html/x",
    ],
)
def test_other_pages_have_other_keys(other: str) -> None:
    assert similar_key(other) != similar_key("http://site.test/docs")


# Properties

PIECES = [*string.ascii_letters, *"0123456789", *"/.:?#%&=@\\;~-_ \t\n[]é日\0"]
WORDS = [
    "../",
    "./",
    "//",
    "xn--",
    "%2e",
    "%41",
    "%2F",
    "utm_a=",
    "a.test",
    "index.html",
    "&b=",
    "#",
]
SOUP = st.lists(st.sampled_from([*PIECES, *WORDS]), max_size=30).map("".join)
PREFIXES = st.sampled_from(["", "http://", "https://a.test", "HTTP://A.test:80/", "//", "/", "?"])
LINKS = st.builds(str.__add__, PREFIXES, SOUP)


def _or_error(url: str, base: str | None = None, query: Query = Query.KEEP) -> str | ExitCode:
    try:
        return canonical(url, base, query)
    except VisitFailed as failed:
        return failed.code


@given(LINKS, st.sampled_from(Query))
def test_canonical_is_idempotent_and_never_crashes(link: str, query: Query) -> None:
    once = _or_error(link, BASE, query)
    if isinstance(once, str):
        assert canonical(once, query=query) == once
        assert canonical(once, "http://elsewhere.test/x", query) == once
        assert join_url(split_url(once)) == once


@given(LINKS, LINKS)
def test_the_short_cut_says_what_the_parser_says(link: str, page: str) -> None:
    base = _or_error(page, BASE)
    if isinstance(base, ExitCode):
        base = BASE
    try:
        expected: str | ExitCode = _written(_resolved(link, base), Query.KEEP)
    except VisitFailed as failed:
        expected = failed.code
    assert _or_error(link, base) == expected


@given(
    st.sampled_from(
        ["http://a.test:8080", "http://127.0.0.1:81", "https://a.test", "http://[::1]:5"]
    ),
    SOUP,
)
def test_links_within_a_site_are_what_the_parser_says(origin: str, rest: str) -> None:
    try:
        expected: str | ExitCode = _written(_resolved(origin + rest, f"{origin}/a/b"), Query.KEEP)
    except VisitFailed as failed:
        expected = failed.code
    assert _or_error(origin + rest, f"{origin}/a/b") == expected


@given(LINKS)
def test_what_is_canonical_means_the_same_to_the_parser(link: str) -> None:
    url = _or_error(link, BASE)
    if isinstance(url, str):
        assert ada_url.normalize_url(url) == url


@given(LINKS)
def test_an_origin_is_scheme_and_host(link: str) -> None:
    url = _or_error(link, BASE)
    if isinstance(url, str):
        scheme, host, _ = split_url(url)
        assert origin_of(url) == f"{scheme}://{host}"


@given(LINKS)
def test_the_fragment_never_matters(link: str) -> None:
    without = link.partition("#")[0].strip()
    if "\0" not in link:
        assert _or_error(f"{without}#part", BASE) == _or_error(without, BASE)


@given(LINKS)
def test_sorting_is_stable_under_shuffled_order(link: str) -> None:
    url = _or_error(link, BASE)
    if isinstance(url, str) and "?" in url:
        path, _, search = url.partition("?")
        names = [parameter.partition("=")[0] for parameter in search.split("&")]
        turned = "&".join(reversed(search.split("&")))
        if len(set(names)) == len(names):
            assert canonical(f"{path}?{turned}", query=Query.SORT) == canonical(
                url, query=Query.SORT
            )
