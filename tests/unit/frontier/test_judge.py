from datetime import UTC, datetime

from trapline.errors import ExitCode
from trapline.frontier.judge import REMEMBERED, Judgement, LinkJudge
from trapline.frontier.robots import parse_robots
from trapline.frontier.scope import Scope, ScopeRules
from trapline.frontier.traps import TrapKind
from trapline.frontier.url import Query
from trapline.model import Link

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SITE = "https://site.test"
ROBOTS = {SITE: parse_robots(b"User-agent: *\nDisallow: /private").access("Trapline")}


def a_judge(*, query: Query = Query.KEEP, similar: bool = True, **rules: object) -> LinkJudge:
    scope = Scope(ScopeRules(f"{SITE}/", **rules))  # type: ignore[arg-type]
    return LinkJudge(scope, ROBOTS, query=query, similar=similar)


def judged(judge: LinkJudge, link: str, depth: int = 1) -> Judgement | None:
    return judge.judge(link, f"{SITE}/page", depth, NOW)


def refusal(link: str, depth: int = 1, **rules: object) -> ExitCode | None:
    judgement = judged(a_judge(**rules), link, depth)  # type: ignore[arg-type]
    assert judgement is not None
    return judgement.refusal


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
    judge = a_judge()
    assert judged(judge, "/a") is not None
    for same in ("/a", "/a/", "http://www.site.test/a/index.html", "/a#part", "/a?utm_source=x"):
        assert judged(judge, same) is None
    assert judged(judge, "/a?x=1") is not None


def test_links_that_are_known_by_their_spelling_need_no_look() -> None:
    judge = a_judge()
    links = [Link(f"{SITE}/{name}") for name in ("a", "b", "a")]
    assert judge.fresh(links, 1) == links
    judged(judge, f"{SITE}/a")
    assert judge.fresh(links, 1) == [links[1]]
    # The way from here is shorter.
    assert judge.fresh(links, 0) == links
    judge.forget([f"{SITE}/a"], f"{SITE}/page")
    assert judge.fresh(links, 1) == links


def test_links_that_leave_the_site_need_no_look() -> None:
    judge = a_judge()
    links = [Link(f"{place}/a") for place in ("https://other.test", SITE, "https://sub.site.test")]
    assert judge.fresh(links, 1) == [links[1]]
    assert a_judge(subdomains=True).fresh(links, 1) == links[1:]
    assert a_judge(external=True).fresh(links, 1) == links
    assert a_judge(domains=("other.test",)).fresh(links, 1) == links[:2]


def test_similar_urls_are_told_apart_where_asked() -> None:
    judge = a_judge(similar=False)
    assert [judged(judge, link) is None for link in ("/a", "/a", "/a/")] == [False, True, False]


def test_a_shorter_way_is_judged_again() -> None:
    judge = a_judge(max_depth=2)
    far = judged(judge, "/a", depth=3)
    assert far is not None
    assert far.refusal is ExitCode.OUT_OF_SCOPE
    near = judged(judge, "/a", depth=2)
    assert near is not None
    assert near.refusal is None
    assert judged(judge, "/a", depth=2) is None


def test_a_session_is_taken_off_and_its_page_judged() -> None:
    judge = a_judge()
    judgement = judged(judge, "/p;jsessionid=0A1B?x=1")
    assert judgement == Judgement(f"{SITE}/p?x=1", "site.test/p?x=1")
    assert judged(judge, "/p?x=1&PHPSESSID=77") is None
    assert [report.kind for report in judge.traps.reports()] == [TrapKind.SESSION_ID]


def test_queries_can_be_ignored() -> None:
    judge = a_judge(query=Query.DROP)
    judgement = judged(judge, "/list?page=1")
    assert judgement is not None
    assert judgement.url == f"{SITE}/list"
    assert judged(judge, "/list?page=2") is None


def test_the_reason_is_a_sentence() -> None:
    judgement = judged(a_judge(exclude=("secret",)), "/secret")
    assert judgement is not None
    assert judgement.reason == "The URL matches a pattern of excludePaths. (secret)"


def test_memory_is_bounded() -> None:
    judge = a_judge()
    for number in range(REMEMBERED + 10):
        judged(judge, f"/page-{number}")
    assert len(judge._depths) <= REMEMBERED
    assert judged(judge, f"/page-{REMEMBERED + 9}") is None


def test_what_was_lost_with_its_task_is_judged_again() -> None:
    judge = a_judge()
    links = ("/a", f"{SITE}/b", "http://[")
    assert all(judged(judge, link) is not None for link in links[:2])
    judge.forget(links, f"{SITE}/page")
    assert all(judged(judge, link) is not None for link in links[:2])
    assert judged(judge, f"{SITE}/b") is None
