"""Headers are read leniently and written strictly."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from trapline.errors import InvalidInput
from trapline.fetch import headers as http
from trapline.model import APPROVED, Approval, Conditional, FetchRequest

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
WEEK = 7 * 24 * 3600


async def approve(_url: str) -> Approval:
    return APPROVED


def request(**fields: object) -> FetchRequest:
    return FetchRequest(url="http://a.test/", approve=approve, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("9" * 400, WEEK),
        ("Sun, 15 Nov 2026 12:01:00 GMT", 60),
        ("Sunday, 15-Nov-26 12:01:00 GMT", 60),
        ("Sun Nov 15 12:01:00 2026", 60),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0),
        ("Sun, 15 Nov 2099 11:00:00 GMT", WEEK),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after(text: str | None, seconds: float | None) -> None:
    assert http.retry_after(text, NOW) == seconds


@given(st.text(max_size=40))
def test_retry_after_takes_anything(text: str) -> None:
    seconds = http.retry_after(text, NOW)
    assert seconds is None or 0 <= seconds <= WEEK


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1)))  # noqa: DTZ001
def test_dates_survive_the_way_there_and_back(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    sent = http.conditional_headers(Conditional(url="x", last_modified=moment))["If-Modified-Since"]
    assert http.http_date(sent) == moment


@pytest.mark.parametrize(
    "text", ["Sun, 99 Nov 2026 12:01:00 GMT", "Sun, 15 Xyz 2026 12:01:00 GMT", "x" * 29, "0"]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert http.http_date(text) is None


def test_dates_of_other_zones_become_utc() -> None:
    found = http.http_date("Sun, 15 Nov 2026 14:00:00 +0200")
    assert found == NOW
    assert found.utcoffset() == timedelta(0)


def test_headers_of_the_caller_replace_ours_but_not_those_of_the_connection() -> None:
    sent = http.request_headers(
        request(headers={"accept": "image/png", "HOST": "evil", "X-A": "1", "Range": "0-1"}), "me"
    )
    assert sent["accept"] == "image/png"
    assert "Accept" not in sent
    assert sent["X-A"] == "1"
    assert not {"HOST", "Host", "Range"} & set(sent)


def test_identity() -> None:
    plain = http.request_headers(request(), "Mozilla/5.0 (compatible; Trapline/0.1)")
    assert plain["User-Agent"] == "Mozilla/5.0 (compatible; Trapline/0.1)"
    phone = http.request_headers(
        request(mobile=True, language="de"), "Mozilla/5.0 (compatible; T/1)"
    )
    assert "Mobile" in phone["User-Agent"]
    assert phone["User-Agent"].endswith(" (compatible; T/1)")
    assert phone["Accept-Language"] == "de"
    assert http.request_headers(request(user_agent="other"), "me")["User-Agent"] == "other"


@pytest.mark.parametrize(
    ("name", "value"),
    [("X-A", "1\r\nX-B: 2"), ("X-A", "nul\0"), ("X A", "1"), ("", "1"), ("X:A", "1")],
)
def test_headers_cannot_smuggle(name: str, value: str) -> None:
    with pytest.raises(InvalidInput):
        http.request_headers(request(headers={name: value}), "me")


@pytest.mark.parametrize("field", ["user_agent", "language"])
def test_other_fields_cannot_smuggle_either(field: str) -> None:
    with pytest.raises(InvalidInput):
        http.request_headers(request(**{field: "x\r\nX-B: 2"}), "me")


def test_secrets_stay_with_their_origin() -> None:
    sent = http.request_headers(
        request(headers={"AUTHORIZATION": "x", "cookie": "a=1", "X-A": "1"}), "me"
    )
    elsewhere = http.without_secrets(sent)
    assert "X-A" in elsewhere
    assert not {name.lower() for name in elsewhere} & {"authorization", "cookie"}


def test_cookies_join_those_given_by_hand() -> None:
    sent = http.request_headers(request(headers={"cookie": "a=1"}), "me")
    assert http.with_cookies(sent, "b=2")["Cookie"] == "a=1; b=2"
    assert http.with_cookies({}, "b=2")["Cookie"] == "b=2"


def received(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    """Headers in the type that the client hands over."""
    return CIMultiDictProxy(CIMultiDict(pairs))


def test_bytes_that_are_no_utf8_can_be_stored() -> None:
    smuggled = b"caf\xe9".decode("utf-8", "surrogateescape")
    headers = received(("X-Name", smuggled), ("X-B", "b"))
    assert http.decoded_headers(headers) == (("X-Name", "café"), ("X-B", "b"))
    assert http.decoded_value(received(("X-Name", "naïve")), "X-Name") == "naïve"


def test_repeated_headers_are_kept_in_order() -> None:
    pairs = (("Set-Cookie", "a=1"), ("Vary", "Accept"), ("set-cookie", "b=2"), ("Vary", "Cookie"))
    found = http.decoded_headers(received(*pairs))
    assert found == pairs
    assert {type(name) for name, _ in found} == {str}
    assert http.decoded_value(received(*pairs), "Set-Cookie") == "a=1"


def test_repeated_lists_are_one_list() -> None:
    headers = received(("Content-Encoding", "gzip"), ("content-encoding", "br"))
    assert http.combined(headers, "Content-Encoding") == "gzip, br"
    assert http.combined(headers, "Vary") is None
