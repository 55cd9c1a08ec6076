"""Bot challenges: detects interstitial pages that require a browser or a person.

Headers decide where a service identifies itself in them. Otherwise the body must be small and hold a
marker that no page has which only writes about the service.
"""

from collections.abc import Mapping
from http import HTTPStatus

_MOST_BYTES = 2**16
_MOST_BYTES_OF_SUCCESS = 2**14

# header: the beginnings of its value
_HEADERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("cf-mitigated", ("challenge",)),
    ("x-vercel-mitigated", ("challenge",)),
    ("x-amzn-waf-action", ("challenge", "captcha")),
)
_MARKERS_OF_REFUSALS = (
    b"/cdn-cgi/challenge-platform/",
    b"window._cf_chl_opt",
    b"cf-browser-verification",
    b"captcha-delivery.com/",
    b"_pxAppId",
    b"px-captcha",
    b"/_Incapsula_Resource?",
    b"sucuri_cloudproxy_js",
    b"ddos-guard/js-challenge",
    b"/ddos-guard/",
    b"AwsWafIntegration",
    b"window.gokuProps",
    b"/149e9513-01fa-4fb0-aad4-566afd725d1b/",
    b"www.google.com/recaptcha/challengepage",
)
# These services answer 200.
_MARKERS_OF_SUCCESSES = (
    b'id="anubis_challenge"',
    b"/_Incapsula_Resource?SWJIYLWA",
    b"sucuri_cloudproxy_js",
    b"window.gokuProps",
)


def is_challenge(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a response is a challenge. `headers` must ignore the case of names."""
    for name, beginnings in _HEADERS:
        value = headers.get(name)
        if value is not None and value.lower().startswith(beginnings):
            return True
    if status >= HTTPStatus.BAD_REQUEST:
        return len(body) <= _MOST_BYTES and any(marker in body for marker in _MARKERS_OF_REFUSALS)
    # A search in every page would be a tenth of the cost of a fetch, and challenges have no
    # validators.
    if status >= HTTPStatus.MULTIPLE_CHOICES or len(body) > _MOST_BYTES_OF_SUCCESS:
        return False
    if "Last-Modified" in headers or "ETag" in headers:
        return False
    return any(marker in body for marker in _MARKERS_OF_SUCCESSES)
