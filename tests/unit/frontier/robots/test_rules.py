"""RFC 9309, section by section, and how search engines read what is not quite a robots.txt."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.frontier import robots_allows
from trapline.frontier.robots import (
    MAX_ROBOTS_BYTES,
    Access,
    RobotsPolicy,
    parse_robots,
    policy_for,
)
from trapline.frontier.robots.parser import product_token
from trapline.frontier.robots.rules import MAX_WILDCARD_RULES, Rule

AGENT = "Fuchs/1.0 (+https://fuchs.test/)"


def allows(robots: str | bytes, path: str, agent: str = AGENT) -> bool:
    body = robots.encode() if isinstance(robots, str) else robots
    return robots_allows(body, agent, f"https://site.test{path}")


def for_everyone(*rules: str) -> str:
    return "\n".join(["User-agent: *", *rules])


# 2.2.1 The user-agent line


@pytest.mark.parametrize(
    ("line", "applies"),
    [
        ("fuchs", True),
        ("FUCHS", True),
        ("Fuchs/2.0", True),
        ("Fuchs Bau", True),
        ("fuchsbau", False),
        ("rotfuchs", False),
        ("fu", False),
        ("*", True),
        ("* all of you", True),
        ("", False),
        ("ツ", False),
    ],
)
def test_an_agent_is_named_by_its_product_token(line: str, applies: bool) -> None:
    assert allows(f"User-agent: {line}\nDisallow: /", "/x") is not applies


def test_a_named_group_replaces_the_one_for_everyone() -> None:
    robots = "User-agent: *\nDisallow: /all\n\nUser-agent: fuchs\nDisallow: /fox\n"
    assert allows(robots, "/all")
    assert not allows(robots, "/fox")
    assert not allows(robots, "/all", "Other")
    assert allows(robots, "/fox", "Other")


def test_a_named_group_without_rules_allows_all() -> None:
    assert allows("User-agent: *\nDisallow: /\n\nUser-agent: fuchs\n", "/x")


def test_groups_of_one_agent_are_one_group() -> None:
    robots = "User-agent: fuchs\nDisallow: /a\n\nUser-agent: dachs\nDisallow: /b\n\nUser-agent: FUCHS\nDisallow: /c"
    assert not allows(robots, "/a")
    assert allows(robots, "/b")
    assert not allows(robots, "/c")


def test_several_agents_share_a_group() -> None:
    robots = "User-agent: dachs\nUser-agent: fuchs\nDisallow: /a\n\nUser-agent: wolf\nDisallow: /b"
    assert not allows(robots, "/a")
    assert not allows(robots, "/a", "dachs")
    assert allows(robots, "/b")


def test_blank_lines_and_comments_do_not_end_a_group() -> None:
    robots = (
        "User-agent: fuchs\n\n# about badgers\nUser-agent: dachs\n\n\nDisallow: /a\n\nDisallow: /b"
    )
    for path in ("/a", "/b"):
        assert not allows(robots, path)
        assert not allows(robots, path, "dachs")


@pytest.mark.parametrize("other", ["Sitemap: https://site.test/s.xml", "Crawl-delay: 1", "Host: x"])
def test_other_lines_do_not_end_a_group(other: str) -> None:
    robots = f"User-agent: fuchs\n{other}\nUser-agent: dachs\n{other}\nDisallow: /a\n{other}\nDisallow: /b"
    for path in ("/a", "/b"):
        assert not allows(robots, path)
        assert not allows(robots, path, "dachs")


def test_rules_before_any_group_are_ignored() -> None:
    assert allows("Disallow: /\nUser-agent: fuchs\nDisallow: /a", "/x")


def test_no_group_no_rules() -> None:
    assert allows("User-agent: dachs\nDisallow: /", "/x")
    assert allows("", "/x")


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("Trapline", "trapline"),
        ("Trapline/1.0", "trapline"),
        ("Mozilla/5.0 (compatible; Trapline/1.0; +https://x.test)", "trapline"),
        ("Mozilla/5.0 (X11; Linux)", "mozilla"),
        ("MJ12bot/v1.4.8", "mj12bot"),
        ("", ""),
    ],
)
def test_product_tokens(agent: str, token: str) -> None:
    assert product_token(agent) == token


# 2.2.2 The allow and disallow lines


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        # the longest match decides, whatever the order
        (("Allow: /p", "Disallow: /"), "/page", True),
        (("Disallow: /", "Allow: /p"), "/page", True),
        (("Disallow: /x/page.html", "Allow: /x/"), "/x/page.html", False),
        (("Allow: /x/page.html", "Disallow: /x/"), "/x/page.html", True),
        (("Allow: /page", "Disallow: /*.htm"), "/page.htm", False),
        (("Allow: /x/page.", "Disallow: /*.html"), "/x/page.html", True),
        (("Allow: /$", "Disallow: /"), "/", True),
        (("Allow: /$", "Disallow: /"), "/page.htm", False),
        # Allow wins a draw
        (("Disallow: /folder", "Allow: /folder"), "/folder/page", True),
        (("Disallow: /f*", "Allow: /fo"), "/folder", True),
        (("Disallow: /fo", "Allow: /f*"), "/folder", True),
        (("Disallow: /a$", "Allow: /a$"), "/a", True),
        # nothing matches: allowed
        (("Disallow: /a",), "/b", True),
        (("Disallow:",), "/b", True),
        (("Disallow:", "Allow:"), "/b", True),
        # paths are compared with case, from their first octet
        (("Disallow: /X",), "/x", True),
        (("Disallow: /fish",), "/catfish", True),
        (("Disallow: fish",), "/fish", True),
        (("Disallow: /fish/",), "/fish", True),
        (("Disallow: /fish/",), "/fish/salmon", False),
        (("Disallow: /fish",), "/fishheads/yummy.html?x=1", False),
        # the query is part of it
        (("Disallow: /*?",), "/a?b", False),
        (("Disallow: /*?",), "/a", True),
        (("Disallow: /a?sid=",), "/a?sid=1", False),
    ],
)
def test_the_longest_rule_decides(rules: tuple[str, ...], path: str, expected: bool) -> None:
    assert allows(for_everyone(*rules), path) is expected


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/ツ"),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
        ("/foo bar", "/foo%20bar"),
        ("/~user", "/%7Euser"),
    ],
)
def test_paths_are_compared_in_one_encoding(rule: str, path: str) -> None:
    assert not allows(for_everyone(f"Disallow: {rule}"), path)


def test_an_escaped_slash_is_not_a_slash() -> None:
    assert allows(for_everyone("Disallow: /a/b"), "/a%2Fb")
    assert not allows(for_everyone("Disallow: /a%2fb"), "/a%2Fb")


def test_octets_of_another_charset_are_compared_as_they_are() -> None:
    assert not allows(b"User-agent: *\nDisallow: /caf\xe9", "/caf%E9")


# 2.2.3 Special characters


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("/*.php", "/index.php", True),
        ("/*.php", "/folder/any.php.file.html", True),
        ("/*.php", "/index?f=a.php/", True),
        ("/*.php", "/", False),
        ("/*.php", "/windows.PHP", False),
        ("/*.php$", "/index.php", True),
        ("/*.php$", "/index.php?x", False),
        ("/*.php$", "/index.php5", False),
        ("/*.php$", "/.php.php", True),
        ("/fish*.php", "/fishheads/catfish.php?p", True),
        ("/fish*.php", "/Fish.php", False),
        ("/fish*", "/fish", True),
        ("/foo/*/qux", "/foo/a/b/qux", True),
        ("/foo/*/qux", "/foo/qux", False),
        ("/a*b*c$", "/abcbc", True),
        ("/a*b*c$", "/acb", False),
        ("/ab*ba$", "/aba", False),
        ("/ab*ba$", "/abba", True),
        ("*", "/anything", True),
        ("*/private", "/a/private/b", True),
        ("/**//x", "/a//x", True),
        ("/*$", "/anything", True),
        ("/a$b", "/a$b", True),
        ("/a$b", "/a", False),
        ("/a%24", "/a$", True),
        ("/a%24", "/a", False),
        ("/a$", "/a$", False),
        ("/file-%2A.html", "/file-*.html", True),
        ("/file-%2A.html", "/file-x.html", False),
        ("/foo/quz#qux", "/foo/quz", True),
    ],
)
def test_special_characters(rule: str, path: str, matches: bool) -> None:
    assert allows(for_everyone(f"Disallow: {rule}"), path) is not matches


def test_comments_end_a_line() -> None:
    robots = "User-agent: fuchs # the fox\n# Disallow: /\nDisallow: /a # not b"
    assert not allows(robots, "/a")
    assert allows(robots, "/b")


def test_robots_txt_itself_is_always_allowed() -> None:
    assert allows(for_everyone("Disallow: /"), "/robots.txt")
    assert not allows(for_everyone("Disallow: /"), "/robots.txt?x")


# The file as servers send it


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends(end: str) -> None:
    robots = end.join(["User-agent: *", "", "Disallow: /a", "Allow: /a/b", ""])
    assert not allows(robots, "/a")
    assert allows(robots, "/a/b")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_not_part_of_the_first_line(encoding: str) -> None:
    assert not allows("User-agent: *\nDisallow: /ü".encode(encoding), "/%C3%BC")


@pytest.mark.parametrize(
    "robots",
    [
        "USER-AGENT:*\nDISALLOW:/",
        "  user-agent :  *  \n\tdisallow\t: / ",
        "user-agent *\ndisallow /",
        "useragent: *\ndissallow: /",
    ],
)
def test_sloppy_lines_are_understood(robots: str) -> None:
    assert not allows(robots, "/x")


def test_other_names_are_not() -> None:
    assert allows("agent: *\nforbid: /", "/x")
    assert allows("User-agent: *\nDisallow everything please", "/everything")


def test_a_web_page_in_its_place_forbids_nothing() -> None:
    page = b"\n<!DOCTYPE html><html><pre>\nUser-agent: *\nDisallow: /\n</pre>"
    assert parse_robots(page).is_markup
    assert robots_allows(page, AGENT, "https://site.test/x")


def test_what_is_beyond_the_limit_is_not_read() -> None:
    head = b"User-agent: *\nDisallow: /a\n"
    body = head + b"#" * (MAX_ROBOTS_BYTES - len(head) - 8) + b"\nDisallow: /b\n"
    robots = parse_robots(body)
    assert robots.is_cut
    assert not robots.access(AGENT).allows("/a")
    # Half of a line would be another rule: `Disall` none at all, `Disallow: /` all too much.
    assert robots.access(AGENT).allows("/b")
    within = head + b"#" * (MAX_ROBOTS_BYTES - 1000) + b"\nDisallow: /b\n"
    assert not parse_robots(within).access(AGENT).allows("/b")


def test_a_path_or_a_bare_host_can_be_asked_for() -> None:
    robots = for_everyone("Disallow: /a").encode()
    assert not robots_allows(robots, AGENT, "/a/b")
    assert not robots_allows(robots, AGENT, "https://site.test/x/../a")
    assert robots_allows(robots, AGENT, "https://site.test")
    assert not robots_allows(for_everyone("Disallow: /?q").encode(), AGENT, "https://site.test?q=1")


# What is not in the RFC


def test_delays_and_sitemaps() -> None:
    robots = parse_robots(
        b"Sitemap: https://site.test/a.xml\n"
        b"User-agent: *\nCrawl-delay: 2.5\nDisallow: /a\n"
        b"User-agent: dachs\nRequest-rate: 2/1m\n"
        b"User-agent: wolf\nCrawl-delay: soon\nDisallow:\n"
        b"sitemap:https://site.test/b.xml # second\n"
    )
    assert robots.sitemaps == ["https://site.test/a.xml", "https://site.test/b.xml"]
    assert robots.access(AGENT).crawl_delay == 2.5
    assert robots.access("dachs").crawl_delay == 30
    assert robots.access("wolf").crawl_delay is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("10", 10), (".5", 0.5), ("5 seconds", 5), ("-1", None), ("nan", None), ("9" * 400, None), ("99999999", 86400)],
)  # fmt: skip
def test_odd_delays(value: str, seconds: float | None) -> None:
    robots = parse_robots(f"User-agent: *\nCrawl-delay: {value}".encode())
    assert robots.access(AGENT).crawl_delay == seconds


# 2.3.1 Access results


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, RobotsPolicy.READ),
        (204, RobotsPolicy.READ),
        (301, RobotsPolicy.ALLOW_ALL),
        (400, RobotsPolicy.ALLOW_ALL),
        (401, RobotsPolicy.ALLOW_ALL),
        (403, RobotsPolicy.ALLOW_ALL),
        (404, RobotsPolicy.ALLOW_ALL),
        (410, RobotsPolicy.ALLOW_ALL),
        (429, RobotsPolicy.ALLOW_ALL),
        (500, RobotsPolicy.DISALLOW_ALL),
        (503, RobotsPolicy.DISALLOW_ALL),
        (None, RobotsPolicy.DISALLOW_ALL),
    ],
)
def test_what_an_answer_means(status: int | None, expected: RobotsPolicy) -> None:
    assert policy_for(status) is expected


def test_five_redirects_are_followed_and_no_more() -> None:
    assert policy_for(200, redirects=5) is RobotsPolicy.READ
    assert policy_for(200, redirects=6) is RobotsPolicy.ALLOW_ALL


def test_an_earlier_copy_outlives_an_outage() -> None:
    assert policy_for(503, has_last=True) is RobotsPolicy.KEEP_LAST
    assert policy_for(304, has_last=True) is RobotsPolicy.KEEP_LAST
    assert policy_for(404, has_last=True) is RobotsPolicy.ALLOW_ALL
    assert policy_for(503, unreachable_for=timedelta(days=31)) is RobotsPolicy.ALLOW_ALL


def test_an_outage_is_asked_about_sooner() -> None:
    assert RobotsPolicy.DISALLOW_ALL.ask_again_after < RobotsPolicy.READ.ask_again_after
    assert RobotsPolicy.READ.ask_again_after <= timedelta(hours=24)


# Hostile files


def test_many_wildcards_do_not_explode() -> None:
    access = parse_robots(b"User-agent: *\nDisallow: /" + b"a*" * 4000 + b"b$").access(AGENT)
    assert access.allows("/" + "a" * 8000)


def test_many_rules_are_all_heard() -> None:
    lines = [f"Disallow: /{number}/" for number in range(20_000)]
    access = parse_robots(for_everyone(*lines).encode()).access(AGENT)
    assert not access.allows("/19999/x")
    assert access.allows("/20000/x")


def test_beyond_the_bound_of_wildcard_rules_the_start_of_a_rule_is_forbidden() -> None:
    lines = [f"Disallow: /{number}/*.php" for number in range(MAX_WILDCARD_RULES + 1)]
    access = parse_robots(for_everyone(*lines).encode()).access(AGENT)
    assert access.allows("/1/x.html")
    assert not access.allows("/1/x.php")
    assert not access.allows(f"/{MAX_WILDCARD_RULES}/x.html")


@given(st.binary(max_size=300), st.text(max_size=20), st.text(max_size=40))
def test_no_bytes_break_it(body: bytes, agent: str, url: str) -> None:
    assert robots_allows(body, agent, url) in {True, False}


PATTERNS = st.text(alphabet="/ab*$", min_size=1, max_size=8).map(lambda text: f"/{text}")
PATHS = st.text(alphabet="/ab", max_size=8).map(lambda text: f"/{text}")


@given(st.lists(st.tuples(st.booleans(), PATTERNS), max_size=6), PATHS)
def test_the_fast_answer_is_the_plain_one(rules: list[tuple[bool, str]], path: str) -> None:
    written = [Rule(allow, _middle_dollars_literal(pattern)) for allow, pattern in rules]
    matching = [(len(rule.pattern), rule.allow) for rule in written if _matches(rule.pattern, path)]
    assert Access(written).allows(path) is max(matching, default=(0, True))[1]


def _middle_dollars_literal(pattern: str) -> str:
    end = "$" if pattern.endswith("$") else ""
    return pattern.removesuffix("$").replace("$", "%24") + end


def _matches(pattern: str, path: str) -> bool:
    """The definition, by trying everything."""
    if not pattern:
        return True
    if pattern == "$":
        return not path
    if pattern[0] == "*":
        return any(_matches(pattern[1:], path[at:]) for at in range(len(path) + 1))
    return path[:1] == pattern[0] and _matches(pattern[1:], path[1:])
