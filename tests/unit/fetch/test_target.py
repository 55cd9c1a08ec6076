"""URLs are checked before anything is sent."""

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch.target import parse_target, resolve_location

LIMIT = 2000


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", ExitCode.INVALID_URL),
        ("no url", ExitCode.INVALID_URL),
        ("http://", ExitCode.INVALID_URL),
        ("http://a.test:99999/", ExitCode.INVALID_URL),
        ("http://a\0b.test/", ExitCode.INVALID_URL),
        ("http://[::1", ExitCode.INVALID_URL),
        ("http://a.test/\ud800", ExitCode.INVALID_URL),
        ("http://user@a.test/", ExitCode.INVALID_URL),
        ("http://user:password@a.test/", ExitCode.INVALID_URL),
        ("file:///etc/passwd", ExitCode.UNSUPPORTED_SCHEME),
        ("javascript:alert(1)", ExitCode.UNSUPPORTED_SCHEME),
        ("ftp://a.test/", ExitCode.UNSUPPORTED_SCHEME),
        ("http://a.test/" + "x" * LIMIT, ExitCode.URL_TOO_LONG),
        ("http://a.test/" + "ö" * (LIMIT // 4), ExitCode.URL_TOO_LONG),
    ],
)
def test_refused(text: str, code: ExitCode) -> None:
    with pytest.raises(VisitFailed) as failure:
        parse_target(text, LIMIT)
    assert failure.value.code is code
    assert "password@" not in failure.value.message


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("http://a.test/x", "http://a.test/x"),
        ("HTTP://A.test:80/x#part", "http://a.test/x"),
        ("http://bücher.test/ä b", "http://xn--bcher-kva.test/%C3%A4%20b"),
        ("http://a.test/\r\nHost: b", "http://a.test/Host:%20b"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://a.test/@b", "http://a.test/@b"),
    ],
)
def test_normal(text: str, normal: str) -> None:
    goal = parse_target(text, LIMIT)
    assert goal.text == normal
    assert str(goal.url) == normal


@pytest.mark.parametrize(
    ("text", "path", "authority", "port"),
    [
        ("http://a.test/", "/", "a.test", 80),
        ("https://a.test/x?y=1#z", "/x?y=1", "a.test", 443),
        ("http://a.test:8080/?", "/?", "a.test:8080", 8080),
        ("http://a.test:80/x", "/x", "a.test", 80),
        ("http://[::1]:81?x", "/?x", "[::1]:81", 81),
    ],
)
def test_what_a_request_says(text: str, path: str, authority: str, port: int) -> None:
    goal = parse_target(text, LIMIT)
    assert (goal.path, goal.origin.authority, goal.port) == (path, authority, port)


@given(st.from_regex(r"https?://[a-z0-9.\-]{1,20}(:[0-9]{1,5})?/[ -~]{0,20}", fullmatch=True))
def test_the_short_way_agrees_with_the_parser(text: str) -> None:
    try:
        normal = ada_url.normalize_url(text).partition("#")[0]
    except ValueError:
        with pytest.raises(VisitFailed):
            parse_target(text, LIMIT)
        return
    goal = parse_target(text, LIMIT)
    # Taken as it stands, a URL may keep dot segments and a default port: where it leads is equal.
    assert ada_url.normalize_url(goal.text) == normal
    assert goal.host == ada_url.URL(normal).hostname.strip("[]")


@given(st.text(max_size=60))
def test_anything_is_a_target_or_refused(text: str) -> None:
    try:
        goal = resolve_location(parse_target("http://a.test/x/", LIMIT), text, LIMIT)
    except VisitFailed:
        return
    assert goal.text.startswith(("http://", "https://"))
    assert goal.text.isascii()
    assert " " not in goal.text
    assert goal.text.isprintable()


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("http://a.test/", "http://a.test/b", True),
        ("http://a.test/", "https://a.test/b", True),
        ("https://a.test/", "http://a.test/b", False),
        ("https://a.test/", "https://b.a.test/", False),
        ("https://a.test/", "https://a.test:8443/", False),
        ("http://a.test:8080/", "https://a.test/", False),
    ],
)
def test_secrets(one: str, other: str, may: bool) -> None:
    assert parse_target(one, LIMIT).may_share_secrets(parse_target(other, LIMIT)) is may


@pytest.mark.parametrize(
    ("http", "https"),
    [
        ("http://a.test/x?y=%20", "https://a.test/x?y=%20"),
        ("http://a.test:8080/", "https://a.test:8080/"),
    ],
)
def test_upgrade(http: str, https: str) -> None:
    assert parse_target(http, LIMIT).upgraded().text == https
