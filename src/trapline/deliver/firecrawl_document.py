"""Documents in Firecrawl's wire format: the requested formats and the metadata that clients read."""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from trapline.model import Document, Metadata
from trapline.rendering import ActionResults, Rendering

# Metadata that only we may set: clients rely on its type or on its truth.
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
        "renderedby",
        "renderedbecause",
    ]
)
_NOT_REDACTED: Final = (
    "url",
    "sourceURL",
    "scrapeId",
    "contentType",
    "cachedAt",
    "publishedTime",
    "modifiedTime",
)
# The reasons of a rendering whose document has `actions`, with empty lists where it has none.
_WITH_ACTIONS: Final = frozenset({"actions", "screenshot", "wait"})
_SIGNATURES: Final = (
    (b"%PDF", "application/pdf"),
    (b"\xff\xd8", "image/jpeg"),
)
_LISTS: Final = frozenset({"ogLocaleAlternate"})
_SEPARATORS: Final = re.compile(r"[^a-z0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitFacts:
    """What a visit tells about a page."""

    url: str
    source_url: str
    scrape_id: str | None = None
    status: int | None = None
    content_type: str | None = None
    error: str | None = None
    cache: str | None = None
    cached_at: datetime | None = None
    waited_ms: int | None = None
    max_pages: int | None = None
    """The most pages of a file that the request wanted."""


def document(
    page: Document, names: frozenset[str], facts: VisitFacts, *, body: bytes | None = None
) -> dict[str, Any]:
    """Build the document; formats that were not requested are left out, not null."""
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


def add_rendering(out: dict[str, Any], rendering: Rendering) -> None:
    """Add what a browser returned besides the page: pictures, PDFs, values of scripts."""
    if rendering.screenshot is not None:
        out["screenshot"] = data_uri(rendering.screenshot)
    if rendering.reason in _WITH_ACTIONS:
        out["actions"] = action_results(rendering.actions)
    if rendering.warning:
        out["warning"] = " ".join(filter(None, (out.get("warning"), rendering.warning)))
    out["metadata"]["renderedBy"] = "browser"
    out["metadata"]["renderedBecause"] = rendering.reason


def action_results(results: ActionResults) -> dict[str, Any]:
    """Return the results of actions; lists of kinds that were not requested are empty."""
    return {
        "screenshots": [data_uri(picture) for picture in results.screenshots],
        "scrapes": [{"url": scrape.url, "html": scrape.html} for scrape in results.scrapes],
        "javascriptReturns": [
            {"type": returned.type, "value": returned.value}
            for returned in results.javascript_returns
        ],
        "pdfs": [data_uri(pdf) for pdf in results.pdfs],
    }


def data_uri(data: bytes) -> str:
    """Return bytes of a picture or PDF as a data URI."""
    kind = next((kind for start, kind in _SIGNATURES if data.startswith(start)), "image/png")
    return f"data:{kind};base64,{b64encode(data).decode()}"


def add_llm_results(
    out: dict[str, Any], values: Mapping[str, Any], warnings: Iterable[str]
) -> None:
    """Add the results of a language model, under Firecrawl's names."""
    for kind, name in (("json", "json"), ("question", "answer"), ("summary", "summary")):
        if kind in values:
            out[name] = values[kind]
    add_warnings(out, warnings)


def add_warnings(out: dict[str, Any], warnings: Iterable[str]) -> None:
    """Add sentences to the warning of a document."""
    warning = " ".join(filter(None, (out.get("warning"), *warnings)))
    if warning:
        out["warning"] = warning


def redact_document(out: dict[str, Any], redact: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a document without personal data; the metadata that clients match requests by stays."""
    exempt = {name: out["metadata"][name] for name in _NOT_REDACTED if name in out["metadata"]}
    warning = {"warning": out["warning"]} if "warning" in out else {}
    redacted: dict[str, Any] = redact(out)
    return redacted | warning | {"metadata": redacted["metadata"] | exempt}


def metadata(found: Metadata, facts: VisitFacts) -> dict[str, Any]:
    """Build the metadata: first the page's own declarations, then ours."""
    out = _declared(found.declared)
    out |= _without_none(
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
            "numPages": _pages_read(found.pages, facts.max_pages),
            "totalPages": found.pages,
            "url": facts.url,
            "sourceURL": facts.source_url,
            "statusCode": facts.status,
            "contentType": facts.content_type,
            "error": facts.error,
            "scrapeId": facts.scrape_id,
            "cacheState": facts.cache,
            "cachedAt": iso_time(facts.cached_at),
        }
    )
    limited = facts.waited_ms is not None
    out |= {"proxyUsed": "basic", "creditsUsed": 1, "concurrencyLimited": limited}
    if limited:
        out["concurrencyQueueDurationMs"] = facts.waited_ms
    return out


def _pages_read(total: int | None, most: int | None) -> int | None:
    return total if total is None or most is None else min(total, most)


def iso_time(at: datetime | None) -> str | None:
    """Format a time as JavaScript does."""
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
            # Clients expect a single value for these names.
            out[name] = value[0] if name.startswith(("og", "dc", "article")) else list(value)
    return out


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
