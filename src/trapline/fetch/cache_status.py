"""Cache status of a response, normalised over CDNs and caches: a pure function of its headers.

Headers of the edge, which is nearest to the client, come before those of the origin. A header or a
word that is not in the tables below gives UNKNOWN: nothing is guessed. docs/warming.md has the table.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from trapline.fetch.structured_fields import Item, parse_list


class CacheStatus(StrEnum):
    """How a cache answered. Stored: never rename a value."""

    HIT = "HIT"
    MISS = "MISS"
    EXPIRED = "EXPIRED"
    STALE = "STALE"
    REVALIDATED = "REVALIDATED"
    BYPASS = "BYPASS"
    DYNAMIC = "DYNAMIC"
    UNKNOWN = "UNKNOWN"


HIT, MISS, EXPIRED, STALE = (
    CacheStatus.HIT,
    CacheStatus.MISS,
    CacheStatus.EXPIRED,
    CacheStatus.STALE,
)
REVALIDATED, BYPASS, DYNAMIC, UNKNOWN = (
    CacheStatus.REVALIDATED,
    CacheStatus.BYPASS,
    CacheStatus.DYNAMIC,
    CacheStatus.UNKNOWN,
)


class Layer(StrEnum):
    """Where the cache stands: in front of the website, or in its application."""

    EDGE = "edge"
    ORIGIN = "origin"


class CacheResult(Struct, frozen=True):
    """The status of one response, with the header that gave it and the point of presence."""

    status: CacheStatus = UNKNOWN
    layer: Layer | None = None
    header: str | None = None
    raw: str | None = None
    pop: str | None = None
    age: int | None = None
    certain: bool = True
    """False where only `Age` says that a cache answered."""
    hides_bypass: bool = False
    """Whether this cache shows MISS for what it passes: a repeated MISS is then a BYPASS."""


Headers = Mapping[str, str]
Rule = Callable[[str, Headers], CacheStatus]

_WORDS: Final = {
    **{status.value: status for status in CacheStatus},
    "UPDATING": STALE,
    "UNCACHEABLE": DYNAMIC,
    "DISABLED": BYPASS,
    "PASS": BYPASS,
    "EXPIRE": EXPIRED,
}
_CLOUDFLARE: Final = _WORDS | {"NONE": BYPASS, "UNKNOWN": BYPASS, "NONE/UNKNOWN": BYPASS}
_VERCEL: Final = _WORDS | {"PRERENDER": HIT}
_CLOUDFRONT: Final = {
    "HIT": HIT,
    "REFRESHHIT": REVALIDATED,
    "MISS": MISS,
    # The viewer's own location had nothing; the one before the origin had.
    "ORIGINSHIELDHIT": MISS,
    "ERROR": BYPASS,
    "REDIRECT": BYPASS,
    "LAMBDAGENERATEDRESPONSE": BYPASS,
    "FUNCTIONGENERATEDRESPONSE": BYPASS,
    "LIMITEXCEEDED": BYPASS,
    "CAPACITYEXCEEDED": BYPASS,
}
_TCP: Final = {
    "TCP_HIT": HIT,
    "TCP_MEM_HIT": HIT,
    "TCP_IMS_HIT": HIT,
    "TCP_NEGATIVE_HIT": HIT,
    "TCP_REMOTE_HIT": HIT,
    "TCP_REFRESH_HIT": REVALIDATED,
    "TCP_REFRESH_MISS": EXPIRED,
    "TCP_REFRESH_FAIL_HIT": STALE,
    "TCP_EXPIRED_MISS": EXPIRED,
    "TCP_EXPIRED_HIT": STALE,
    "TCP_MISS": MISS,
    "TCP_CLIENT_REFRESH_MISS": MISS,
    "TCP_DENIED": BYPASS,
    "TCP_COOKIE_DENY": BYPASS,
    "PRIVATE_NOSTORE": BYPASS,
    "CONFIG_NOCACHE": BYPASS,
    "UNCACHEABLE": BYPASS,
    "N/A": BYPASS,
}
_TRAFFIC_SERVER: Final = {
    "HIT-FRESH": HIT,
    "HIT-STALE": EXPIRED,
    "MISS": MISS,
    "SKIPPED": BYPASS,
}
_X_CACHE: Final = {**_WORDS, **_TCP, **_TRAFFIC_SERVER}
_FORWARDED: Final = {
    "miss": MISS,
    "uri-miss": MISS,
    "vary-miss": MISS,
    "partial": MISS,
    "stale": EXPIRED,
    "bypass": BYPASS,
    "method": BYPASS,
    "request": BYPASS,
}
_PREFIXES: Final = {
    "hit": HIT,
    "miss": MISS,
    "stale": STALE,
    "revalidated": REVALIDATED,
    "bypass": BYPASS,
    "uncacheable": DYNAMIC,
}
_NOT_MODIFIED: Final = 304
_FIRST_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_/-]*")
_FASTLY_POP: Final = re.compile(r"cache-.*-([A-Z]{3,4})$")
_BUNNY_POP: Final = re.compile(r"BunnyCDN-([A-Za-z]+[0-9]*)-")
_AKAMAI_POP: Final = re.compile(r"from (a[0-9-]+)\.deploy\.", re.IGNORECASE)
_DIGITS: Final = re.compile(r"[0-9]{1,10}")


def cache_status(headers: Iterable[tuple[str, str]]) -> CacheResult:
    """Return how the caches on the way say that they answered; repeated headers are joined."""
    fields = _joined(headers)
    age = _age(fields)
    edge = _first(fields, _EDGE_RULES)
    if edge is not None:
        name, status = edge
        return CacheResult(
            status,
            Layer.EDGE,
            name,
            fields[name],
            _pop(fields),
            age,
            hides_bypass=name == "x-cache" and _is_fastly(fields),
        )
    if age:
        # A cache that does not name itself: what the origin says below was said when it was stored.
        return CacheResult(HIT, Layer.EDGE, "age", fields["age"], _pop(fields), age, certain=False)
    origin = _first(fields, _ORIGIN_RULES)
    if origin is not None:
        name, status = origin
        return CacheResult(status, Layer.ORIGIN, name, fields[name], _pop(fields), age)
    return CacheResult(pop=_pop(fields), age=age)


def _joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, value in headers:
        lowered = name.lower()
        fields[lowered] = f"{fields[lowered]}, {value}" if lowered in fields else value
    return fields


def _first(fields: Headers, rules: Mapping[str, Rule]) -> tuple[str, CacheStatus] | None:
    """Return the first header with a known meaning; of unknown ones only, the first of them."""
    unknown = None
    for name, rule in rules.items():
        if name not in fields:
            continue
        status = rule(fields[name], fields)
        if status is not UNKNOWN:
            return name, status
        unknown = unknown or (name, UNKNOWN)
    return unknown


def _by_word(words: Mapping[str, CacheStatus]) -> Rule:
    """A rule that looks a value's first word up, as in `Hit from cloudfront`."""

    def rule(value: str, _: Headers) -> CacheStatus:
        match = _FIRST_WORD.match(value.strip())
        return UNKNOWN if match is None else words.get(match[0].upper(), UNKNOWN)

    return rule


def _by_prefix(value: str, _: Headers) -> CacheStatus:
    lowered = value.strip().lower()
    return next((s for prefix, s in _PREFIXES.items() if lowered.startswith(prefix)), UNKNOWN)


def _cache_status_field(value: str, _: Headers) -> CacheStatus:
    """RFC 9211: the last member is the cache nearest to the client."""
    items = parse_list(value)
    return _member(items[-1]) if items else UNKNOWN


def _member(item: Item) -> CacheStatus:
    parameters = item.parameters
    if parameters.get("hit") is True:
        ttl = parameters.get("ttl")
        return STALE if isinstance(ttl, int) and ttl < 0 else HIT
    status = _FORWARDED.get(str(parameters.get("fwd", "")), UNKNOWN)
    if status is EXPIRED and parameters.get("fwd-status") == _NOT_MODIFIED:
        return REVALIDATED
    return status


def _x_cache(value: str, fields: Headers) -> CacheStatus:
    """Many caches use X-Cache; of a list, the last member is the edge."""
    if "cloudfront" in value.lower():
        return _by_word(_CLOUDFRONT)(value, fields)
    if _is_fastly(fields) or "," in value:
        value = value.rsplit(",", 1)[-1]
    return _by_word(_X_CACHE)(value, fields)


def _is_fastly(fields: Headers) -> bool:
    return fields.get("x-served-by", "").startswith("cache-") or "fastly" in fields.get("via", "")


def _tencent(value: str, _: Headers) -> CacheStatus:
    """`Cache Hit`, `Hit From MemCache`, `Cache Miss`; the last member is the edge."""
    words = value.rsplit(",", 1)[-1].lower().split()
    return HIT if "hit" in words else MISS if "miss" in words else UNKNOWN


def _varnish(value: str, _: Headers) -> CacheStatus:
    """Two transaction ids: of this request, and of the one that filled the cache."""
    ids = value.replace(",", " ").split()
    if not ids or not all(part.isdecimal() for part in ids):
        return UNKNOWN
    return MISS if len(ids) == 1 else HIT


def _rack(value: str, _: Headers) -> CacheStatus:
    words = {word.strip() for word in value.lower().split(",")}
    if "fresh" in words:
        return HIT
    if "stale" in words:
        return REVALIDATED if "valid" in words else EXPIRED
    return MISS if "miss" in words else BYPASS if "pass" in words else UNKNOWN


_WORD: Final = _by_word(_WORDS)
_EDGE_RULES: Final[Mapping[str, Rule]] = {
    "cf-cache-status": _by_word(_CLOUDFLARE),
    "cache-status": _cache_status_field,
    "x-vercel-cache": _by_word(_VERCEL),
    "cdn-cache": _WORD,
    "x-77-cache": _WORD,
    "x-hcdn-cache-status": _WORD,
    "fly-cache-status": _WORD,
    "x-cache": _x_cache,
    "x-cache-lookup": _tencent,
    "x-sucuri-cache": _WORD,
    "x-kinsta-cache": _WORD,
    "x-proxy-cache": _WORD,
    "x-cache-status": _WORD,
    "x-nginx-cache": _WORD,
    "x-nginx-cache-status": _WORD,
    "x-fastcgi-cache": _WORD,
    "x-varnish-cache": _WORD,
    "x-varnish": _varnish,
}
_ORIGIN_RULES: Final[Mapping[str, Rule]] = {
    "x-drupal-cache": _WORD,
    "x-drupal-dynamic-cache": _WORD,
    "x-litespeed-cache": _by_prefix,
    "x-nextjs-cache": _by_prefix,
    "x-magento-cache-debug": _by_prefix,
    "x-rack-cache": _rack,
}


def _age(fields: Headers) -> int | None:
    match = _DIGITS.fullmatch(fields.get("age", "").strip())
    return None if match is None else int(match[0])


def _pop(fields: Headers) -> str | None:
    """Return the point of presence that answered, as its CDN abbreviates it."""
    for name, read in _POPS.items():
        if name in fields:
            pop = read(fields[name])
            if pop:
                return pop[:64]
    return None


def _last(value: str) -> str:
    return value.rsplit(",", 1)[-1].strip()


def _matched(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    def read(value: str) -> str | None:
        match = pattern.search(_last(value))
        return None if match is None else match[1]

    return read


_POPS: Final[Mapping[str, Callable[[str], str | None]]] = {
    # 8f3a1b2c3d4e5f60-FRA
    "cf-ray": lambda value: value.rpartition("-")[2] if "-" in value else None,
    # FRA56-P3
    "x-amz-cf-pop": lambda value: value.strip(),
    "x-served-by": _matched(_FASTLY_POP),
    # fra1::iad1::abcde-1700000000000-0123456789ab
    "x-vercel-id": lambda value: value.partition("::")[0] if "::" in value else None,
    "x-77-pop": lambda value: value.strip(),
    "x-edge-location": lambda value: value.strip(),
    "server": _matched(_BUNNY_POP),
    "x-cache": _matched(_AKAMAI_POP),
}
