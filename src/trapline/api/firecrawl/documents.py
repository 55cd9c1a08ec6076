"""Documents on the wire: formats that were asked for, and metadata as Firecrawl's clients read it."""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from trapline.model import Document, Metadata

# What clients read as numbers, words of a list or our own statement: no page may say it.
_OURS: Final = frozenset(
    [
        "statuscode",
        "scrapeid",
        "numpages",
        "totalpages",
        "contenttype",
        "proxyused",
        "timezone",
        "cachestate",
        "cachedat",
        "creditsused",
        "concurrencylimited",
        "concurrencyqueuedurationms",
        "error",
        "url",
        "sourceurl",
    ]
)
_LISTS: Final = frozenset({"ogLocaleAlternate"})
_SEPARATORS: Final = re.compile(r"[^a-z0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the visit of a page says of it."""

    url: str
    source_url: str
    scrape_id: str | None = None
    status: int | None = None
    content_type: str | None = None
    error: str | None = None
    cache: str | None = None
    cached_at: datetime | None = None
    waited_ms: int | None = None


def document(
    page: Document, names: frozenset[str], facts: Facts, *, body: bytes | None = None
) -> dict[str, Any]:
    """Build the document; formats that were not asked for are left out, not null."""
    out: dict[str, Any] = {}
    if "markdown" in names:
        out["markdown"] = page.markdown
    if "html" in names:
        out["html"] = page.html or ""
    if "rawHtml" in names:
        out["rawHtml"] = page.raw_html or ""
    if "rawBase64" in names and body is not None:
        out["rawBase64"] = b64encode(body).decode()
    if "links" in names:
        out["links"] = list(dict.fromkeys(link.url for link in page.links))
    if "images" in names:
        out["images"] = list(dict.fromkeys(image.url for image in page.images))
    if "summary" in names and page.summary is not None:
        out["summary"] = page.summary
    if "branding" in names and page.branding is not None:
        out["branding"] = page.branding
    if page.warning:
        out["warning"] = page.warning
    out["metadata"] = metadata(page.metadata, facts)
    return out


def add_answers(out: dict[str, Any], values: Mapping[str, Any], warnings: Iterable[str]) -> None:
    """Add what a language model said, under the names that clients know."""
    for kind, name in (("json", "json"), ("question", "answer"), ("summary", "summary")):
        if kind in values:
            out[name] = values[kind]
    said = " ".join(filter(None, (out.get("warning"), *warnings)))
    if said:
        out["warning"] = said


def metadata(found: Metadata, facts: Facts) -> dict[str, Any]:
    """Build the metadata: what the page declares, then what we know ourselves."""
    out = _declared(found.declared)
    out |= _known(
        {
            "title": found.title,
            "description": found.description,
            "language": found.language,
            "author": found.author,
            "keywords": ", ".join(found.keywords) or None,
            "robots": found.robots,
            "favicon": found.favicon,
            "publishedTime": found.published,
            "modifiedTime": found.modified,
            "numPages": found.pages,
            "totalPages": found.pages,
            "url": facts.url,
            "sourceURL": facts.source_url,
            "statusCode": facts.status,
            "contentType": facts.content_type,
            "error": facts.error,
            "scrapeId": facts.scrape_id,
            "cacheState": facts.cache,
            "cachedAt": moment(facts.cached_at),
        }
    )
    limited = facts.waited_ms is not None
    out |= {"proxyUsed": "basic", "creditsUsed": 1, "concurrencyLimited": limited}
    if limited:
        out["concurrencyQueueDurationMs"] = facts.waited_ms
    return out


def moment(at: datetime | None) -> str | None:
    """Write a time as JavaScript does."""
    if at is None:
        return None
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def _declared(declared: Mapping[str, str | tuple[str, ...]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in declared.items():
        if _SEPARATORS.sub("", name.lower()) in _OURS:
            continue
        if name in _LISTS:
            out[name] = [value] if isinstance(value, str) else list(value)
        elif isinstance(value, str):
            out[name] = value
        else:
            # One word is what clients expect of the names that they know.
            out[name] = value[0] if name.startswith(("og", "dc", "article")) else list(value)
    return out


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
