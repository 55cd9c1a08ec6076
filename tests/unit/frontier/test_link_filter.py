from datetime import UTC, datetime

from trapline.errors import ExitCode
from trapline.frontier.canonical_url import Query
from trapline.frontier.link_filter import CACHE_SIZE, LinkDecision, LinkFilter
from trapline.frontier.priority import link_rank
from trapline.frontier.robots import parse_robots
from trapline.frontier.scope import Scope, ScopeRules
from trapline.model import Link

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SITE = "https://site.test"
ROBOTS = {SITE: parse_robots(b"User-agent: *\nDisallow: /private").access("Trapline")}


def a_filter(*, query: Query = Query.KEEP, similar: bool = True, **rules: object) -> LinkFilter:
    scope = Scope(ScopeRules(f"{SITE}/", **rules))  # type: ignore[arg-type]
    return LinkFilter(scope, ROBOTS, query=query, similar=similar)


def decide(link_filter: LinkFilter, link: str, depth: int = 1) -> LinkDecision | None:
    return link_filter.decide(link, f"{SITE}/page", depth, NOW)


def refusal(link: str, depth: int = 1, **rules: object) -> ExitCode | None:
    decision = decide(a_filter(**rules), link, depth)  # type: ignore[arg-type]
    assert decision is not None
    return decision.refusal


def test_each_link_gets_the_exit_code_that_says_why_not() -> None:
    assert refusal("/open") is None
    assert refusal("mailto:a@site.test") is ExitCode.UNSUPPORTED_SCHEME
    assert refusal("http://[") is ExitCode.INVALID_URL
    assert refusal("https://other.test/") is ExitCode.OUT_OF_SCOPE
    assert refusal("/open", depth=3, max_depth=2) is ExitCode.OUT_OF_SCOPE
    assert refusal("/a/b/a/b/a/b") is ExitCode.TRAP
    assert refusal("/private/x") is ExitCode.ROBOTS_DISALLOWED
    assert refusal("https://sub.site.test/private", subdomains=True) is None


def test_what_was_judged_is_not_judged_again() -> None:
    link_filter = a_filter()
    assert decide(link_filter, "/a") is not None
    for same in ("/a", "/a/", "http://www.site.test/a/index.html", "/a#part", "/a?utm_source=x"):
        assert decide(link_filter, same) is None
    assert decide(link_filter, "/a?x=1") is not None


def test_links_that_are_known_by_their_spelling_need_no_look() -> None:
    link_filter = a_filter()
    links = [Link(f"{SITE}/{name}") for name in ("a", "b", "a")]
    assert link_filter.unseen(links, 1) == links
    decide(link_filter, f"{SITE}/a")
    assert link_filter.unseen(links, 1) == [links[1]]
    # The way from here is shorter.
    assert link_filter.unseen(links, 0) == links
    link_filter.forget([f"{SITE}/a"], f"{SITE}/page")
    assert link_filter.unseen(links, 1) == links


def test_links_that_leave_the_site_need_no_look() -> None:
    link_filter = a_filter()
    links = [Link(f"{place}/a") for place in ("https://other.test", SITE, "https://sub.site.test")]
    assert link_filter.unseen(links, 1) == [links[1]]
    assert a_filter(subdomains=True).unseen(links, 1) == links[1:]
    assert a_filter(external=True).unseen(links, 1) == links
    assert a_filter(domains=("other.test",)).unseen(links, 1) == links[:2]


def test_similar_urls_are_told_apart_where_asked() -> None:
    link_filter = a_filter(similar=False)
    assert [decide(link_filter, link) is None for link in ("/a", "/a", "/a/")] == [
        False,
        True,
        False,
    ]


def test_a_shorter_way_is_judged_again() -> None:
    link_filter = a_filter(max_depth=2)
    far = decide(link_filter, "/a", depth=3)
    assert far is not None
    assert far.refusal is ExitCode.OUT_OF_SCOPE
    near = decide(link_filter, "/a", depth=2)
    assert near is not None
    assert near.refusal is None
    assert decide(link_filter, "/a", depth=2) is None


def test_a_session_is_taken_off_and_its_page_judged() -> None:
    link_filter = a_filter()
    decision = decide(link_filter, "/p;jsessionid=0A1B?x=1")
    assert decision == LinkDecision(f"{SITE}/p?x=1", "site.test/p?x=1")
    assert decide(link_filter, "/p?x=1&PHPSESSID=77") is None


def test_queries_can_be_ignored() -> None:
    link_filter = a_filter(query=Query.DROP)
    decision = decide(link_filter, "/list?page=1")
    assert decision is not None
    assert decision.url == f"{SITE}/list"
    assert decide(link_filter, "/list?page=2") is None


def test_the_reason_is_a_sentence() -> None:
    decision = decide(a_filter(exclude=("secret",)), "/secret")
    assert decision is not None
    assert decision.reason == "The URL matches a pattern of excludePaths. (secret)"


def test_memory_is_bounded() -> None:
    link_filter = a_filter()
    for number in range(CACHE_SIZE + 10):
        decide(link_filter, f"/page-{number}")
    assert len(link_filter._ranks) <= CACHE_SIZE
    assert decide(link_filter, f"/page-{CACHE_SIZE + 9}") is None


def test_what_was_lost_with_its_task_is_judged_again() -> None:
    link_filter = a_filter()
    links = ("/a", f"{SITE}/b", "http://[")
    assert all(decide(link_filter, link) is not None for link in links[:2])
    link_filter.forget(links, f"{SITE}/page")
    assert all(decide(link_filter, link) is not None for link in links[:2])
    assert decide(link_filter, f"{SITE}/b") is None


def test_a_better_priority_gets_a_second_decision_that_says_it_is_queued() -> None:
    link_filter = a_filter(max_depth=1)
    assert decide(link_filter, f"{SITE}/a", link_rank(900, 1)) is not None
    again = decide(link_filter, f"{SITE}/a", link_rank(190, 2))
    assert again is not None
    assert (again.refusal, again.seen) == (None, True)
    assert decide(link_filter, f"{SITE}/a", link_rank(190, 2)) is None
    assert decide(link_filter, f"{SITE}/a", link_rank(271, 1)) is None


def test_a_better_priority_does_not_queue_what_was_refused() -> None:
    link_filter = a_filter()
    assert decide(link_filter, "/private/x", link_rank(900, 1)) is not None
    assert decide(link_filter, "/private/x", link_rank(100, 1)) is None
