"""An answer's status, headers and body become an exit code and a sentence."""

import pytest
from multidict import CIMultiDict

from trapline.errors import ExitCode
from trapline.fetch.challenge import is_challenge
from trapline.fetch.outcome import outcome, sentence

PAGE = b"<!doctype html><title>A page</title><p>About /cdn-cgi/ and captchas.</p>"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (200, ExitCode.CONTENT),
        (204, ExitCode.CONTENT),
        (206, ExitCode.TRUNCATED),
        (300, ExitCode.CONTENT),
        (304, ExitCode.MALFORMED_RESPONSE),
        (305, ExitCode.MALFORMED_RESPONSE),
        (400, ExitCode.CLIENT_ERROR),
        (401, ExitCode.ACCESS_DENIED),
        (403, ExitCode.ACCESS_DENIED),
        (404, ExitCode.NOT_FOUND),
        (408, ExitCode.SERVICE_UNAVAILABLE),
        (410, ExitCode.GONE),
        (418, ExitCode.CLIENT_ERROR),
        (429, ExitCode.RATE_LIMITED),
        (451, ExitCode.ACCESS_DENIED),
        (500, ExitCode.SERVER_ERROR),
        (503, ExitCode.SERVICE_UNAVAILABLE),
        (520, ExitCode.SERVER_ERROR),
        (700, ExitCode.MALFORMED_RESPONSE),
        (999, ExitCode.ACCESS_DENIED),
    ],
)
def test_status(status: int, code: ExitCode) -> None:
    assert outcome(status, CIMultiDict(), PAGE, conditional=False) is code


def test_not_modified_needs_a_condition() -> None:
    assert outcome(304, CIMultiDict(), b"", conditional=True) is ExitCode.NOT_MODIFIED


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (403, {"CF-Mitigated": "challenge"}, b""),
        (429, {"x-vercel-mitigated": "challenge"}, b""),
        (202, {"x-amzn-waf-action": "challenge"}, b""),
        (405, {"x-amzn-waf-action": "captcha"}, b""),
        (503, {"Server": "cloudflare"}, b"<script>window._cf_chl_opt={}</script>"),
        (403, {}, b"<script src='https://ct.captcha-delivery.com/c.js'>"),
        (403, {}, b"<div id='px-captcha'>"),
        (200, {}, b'<script id="anubis_challenge" type="application/json">'),
        (200, {}, b"<iframe src='/_Incapsula_Resource?SWJIYLWA=719d34d31c8e'>"),
    ],
)
def test_challenges(status: int, headers: dict[str, str], body: bytes) -> None:
    assert outcome(status, CIMultiDict(headers), body, conditional=False) is ExitCode.CHALLENGE


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (200, {}, PAGE),
        (403, {"Server": "cloudflare"}, b"<h1>Access denied</h1>"),
        # A long article that quotes the marker is an article.
        (200, {}, b'id="anubis_challenge"' + b"x" * 2**15),
        (200, {"ETag": '"1"'}, b'id="anubis_challenge"'),
        (200, {"cf-mitigated": "log"}, PAGE),
    ],
)
def test_no_challenges(status: int, headers: dict[str, str], body: bytes) -> None:
    assert not is_challenge(status, CIMultiDict(headers), body)


def test_sentences_name_the_status_once() -> None:
    assert sentence(ExitCode.CONTENT, 200) == "The page was fetched."
    assert sentence(ExitCode.NOT_FOUND, 404).count("404") == 1
    assert sentence(ExitCode.SERVER_ERROR, 502).endswith("(502 Bad Gateway)")
    assert sentence(ExitCode.SERVER_ERROR, 599).endswith("(status 599)")
