import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import InvalidInput, VisitFailed
from trapline.frontier.canonical_url import canonical
from trapline.frontier.patterns import MAX_PATTERN_LENGTH, MAX_PATTERNS, Patterns
from trapline.frontier.registrable_domain import registrable_domain
from trapline.frontier.scope import Scope, ScopeDecision, ScopeRules, section_of

SEED = "https://www.site.test/docs/"


def verdict(url: str, depth: int = 1, seed: str = SEED, **rules: object) -> ScopeDecision:
    return Scope(ScopeRules(seed, **rules)).decide(url, depth)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://www.site.test/docs/a", ScopeDecision.IN_SCOPE),
        ("https://www.site.test/docs", ScopeDecision.IN_SCOPE),
        ("https://site.test/docs/a", ScopeDecision.IN_SCOPE),
        ("http://www.site.test/docs/a", ScopeDecision.IN_SCOPE),
        ("https://www.site.test/docs-old/a", ScopeDecision.OTHER_SECTION),
        ("https://www.site.test/", ScopeDecision.OTHER_SECTION),
        ("https://blog.site.test/docs/a", ScopeDecision.OTHER_SUBDOMAIN),
        ("https://www.site.test:8443/docs/a", ScopeDecision.OTHER_SITE),
        ("https://site.test.evil.test/docs/", ScopeDecision.OTHER_SITE),
        ("https://evilsite.test/docs/", ScopeDecision.OTHER_SITE),
        ("https://www.site.test/docs/a.PNG", ScopeDecision.NO_TEXT),
        ("https://www.site.test/docs/a.css?v=1", ScopeDecision.NO_TEXT),
        ("https://www.site.test/docs/a.pdf", ScopeDecision.IN_SCOPE),
        ("https://www.site.test/docs/x?file=a.png", ScopeDecision.IN_SCOPE),
    ],
)
def test_a_crawl_stays_in_its_section(url: str, expected: ScopeDecision) -> None:
    assert verdict(url) is expected


def test_what_widens_a_scope() -> None:
    root, sub, other = "https://site.test/x", "https://blog.site.test/x", "https://other.test/x"
    assert verdict(root, entire_domain=True) is ScopeDecision.IN_SCOPE
    assert verdict(sub, entire_domain=True) is ScopeDecision.OTHER_SUBDOMAIN
    assert verdict(sub, subdomains=True) is ScopeDecision.IN_SCOPE
    assert verdict(other, subdomains=True) is ScopeDecision.OTHER_SITE
    assert verdict(other, external=True) is ScopeDecision.IN_SCOPE
    assert verdict(sub, external=True) is ScopeDecision.IN_SCOPE
    assert verdict(root, external=True) is ScopeDecision.OTHER_SECTION


def test_the_parent_of_a_subdomain_is_a_subdomain_of_the_site() -> None:
    seed = "https://docs.site.test/"
    assert verdict("https://site.test/x", seed=seed, subdomains=True) is ScopeDecision.IN_SCOPE
    assert verdict("https://www.site.test/x", seed=seed, subdomains=True) is ScopeDecision.IN_SCOPE


def test_tenants_of_a_public_suffix_are_strangers() -> None:
    seed = "https://ada.github.io/"
    assert verdict("https://bob.github.io/", seed=seed, subdomains=True) is ScopeDecision.OTHER_SITE


def test_depth_counts_links_from_the_start() -> None:
    url = "https://www.site.test/docs/a"
    assert verdict(url, depth=2, max_depth=2) is ScopeDecision.IN_SCOPE
    assert verdict(url, depth=3, max_depth=2) is ScopeDecision.TOO_DEEP
    assert verdict(url, depth=1, max_depth=0) is ScopeDecision.TOO_DEEP


def test_the_start_itself_is_always_in_scope() -> None:
    assert verdict(SEED, depth=0, include=("/never",), max_depth=0) is ScopeDecision.IN_SCOPE


def test_patterns_look_at_the_path_unless_told_otherwise() -> None:
    url = "https://www.site.test/docs/api/v2?page=3"
    assert verdict(url, include=("^/docs/api",)) is ScopeDecision.IN_SCOPE
    assert verdict(url, include=("page=3",)) is ScopeDecision.NOT_INCLUDED
    assert verdict(url, include=("page=3",), on_full_url=True) is ScopeDecision.IN_SCOPE
    assert verdict(url, include=(r"\/v[0-9]$",)) is ScopeDecision.IN_SCOPE
    assert verdict(url, exclude=("api",)) is ScopeDecision.EXCLUDED
    assert verdict(url, include=("api",), exclude=("/v2",)) is ScopeDecision.EXCLUDED
    assert verdict(url, include=("nowhere", "(?i)API")) is ScopeDecision.IN_SCOPE
    assert verdict(url, include=("(?i)x", "API")) is ScopeDecision.NOT_INCLUDED


def test_the_reason_names_the_pattern() -> None:
    scope = Scope(ScopeRules(SEED, exclude=("first", "/se.ond")))
    assert "(/se.ond)" in scope.explain("https://www.site.test/docs/second")
    assert scope.explain("https://other.test/") == ScopeDecision.OTHER_SITE.sentence


def test_links_that_a_page_hides_or_disowns() -> None:
    scope = Scope(ScopeRules(SEED))
    assert scope.decide_link(nofollow=True, hidden=True) is ScopeDecision.IN_SCOPE
    scope = Scope(ScopeRules(SEED, follow_nofollow=False, follow_hidden=False))
    assert scope.decide_link(nofollow=True, hidden=False) is ScopeDecision.NOFOLLOW
    assert scope.decide_link(nofollow=False, hidden=True) is ScopeDecision.HIDDEN
    assert scope.decide_link(nofollow=False, hidden=False) is ScopeDecision.IN_SCOPE


@pytest.mark.parametrize("bad", ["(", "\ud800", "[", "(?=x)", r"(a)\1", "a{5000}", "x" * 3000])
def test_a_pattern_that_cannot_be_used_is_refused_with_a_sentence(bad: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Scope(ScopeRules(SEED, include=(bad,)))
    assert refused.value.message.endswith(".")
    assert len(refused.value.message) < 500


def test_the_number_and_length_of_patterns_is_bounded() -> None:
    with pytest.raises(InvalidInput, match=str(MAX_PATTERNS)):
        Patterns(("a",) * (MAX_PATTERNS + 1))
    with pytest.raises(InvalidInput, match=str(MAX_PATTERN_LENGTH)):
        Patterns(("a" * (MAX_PATTERN_LENGTH + 1),))
    assert Patterns(("a",) * MAX_PATTERNS).found_in("a")


def test_a_pattern_that_kills_backtracking_engines_ends() -> None:
    assert not Patterns(("^(a+)+$", "(a|aa)+b", "(.*)*x")).found_in("a" * 8000 + "!")


def test_the_empty_list_finds_nothing() -> None:
    assert not Patterns(())
    assert not Patterns(()).found_in("")
    assert Patterns(("b", "a")).first_found("a") == "a"
    assert Patterns(("b",)).first_found("a") is None


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("/", "/"),
        ("/docs", "/docs/"),
        ("/docs/", "/docs/"),
        ("/docs/index.html", "/docs/"),
        ("/docs/intro.php?x=a/b", "/docs/"),
        ("/docs/v1.2", "/docs/v1.2/"),
    ],
)
def test_the_section_of_a_start(path: str, section: str) -> None:
    assert section_of(path) == section


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.co.uk", "example.co.uk"),
        ("example.com", "example.com"),
        ("com", "com"),
        ("localhost", "localhost"),
        ("10.0.0.1", "10.0.0.1"),
        ("[::1]", "[::1]"),
        ("www.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("x.ada.github.io", "ada.github.io"),
    ],
)
def test_registrable_domains(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_pattern_is_used_or_refused(pattern: str, text: str) -> None:
    with contextlib.suppress(InvalidInput):
        Patterns((pattern,)).found_in(text)


def test_allowed_domains_belong_to_the_site() -> None:
    scope = Scope(ScopeRules(seed="https://example.com/", domains=("Docs.example.org", "x.test")))
    for url in ("https://docs.example.org/a", "https://a.docs.example.org/", "http://x.test:8080/"):
        assert scope.decide(url) is ScopeDecision.IN_SCOPE, url
    for url in ("https://example.org/", "https://notdocs.example.org/", "https://ax.test/"):
        assert scope.decide(url) is ScopeDecision.OTHER_SITE, url


HOSTS = (
    "site.test", "www.site.test", "SITE.test", "sub.site.test", "other.test", "other.test.",
    "other.test:80", "other.test:443", "site.test:443", "user@other.test", "other.test@site.test",
    "other.test\\@site.test", "other.test\\.site.test", "site\t.test", "%73ite.test", "xn--a.test",
    "1.2.3.4", "0x7f.1", "[::1]", "süte.test", "-a-.test", "a_b.test", "a" * 64 + ".test", "localhost",
)  # fmt: skip


@pytest.mark.parametrize("scheme", ["https://", "http://", "HTTPS://", "//", "https:/", "ftp://"])
@pytest.mark.parametrize("end", ["/", "/docs/a", "", "?x/y", "#/z", "\\docs/", "/ä?b#c"])
@pytest.mark.parametrize(
    "rules", [{}, {"subdomains": True}, {"external": True}, {"domains": ("other.test",)}]
)
def test_what_leaves_a_site_by_its_beginning_is_elsewhere(
    scheme: str, end: str, rules: dict[str, object]
) -> None:
    scope = Scope(ScopeRules(SEED, **rules))  # type: ignore[arg-type]
    for host in HOSTS:
        link = f"{scheme}{host}{end}"
        if not scope.is_external(link):
            continue
        with contextlib.suppress(VisitFailed):
            found = scope.decide(canonical(link, SEED))
            assert found in (ScopeDecision.OTHER_SITE, ScopeDecision.OTHER_SUBDOMAIN), link


def test_most_that_leaves_a_site_is_known_by_its_beginning() -> None:
    scope = Scope(ScopeRules(SEED))
    assert scope.is_external("https://other.test/a")
    assert scope.is_external("http://sub.site.test/docs/")
    assert not scope.is_external("https://site.test/docs/a")
    assert not scope.is_external("https://other.test")
    assert not scope.is_external("/docs/a")
