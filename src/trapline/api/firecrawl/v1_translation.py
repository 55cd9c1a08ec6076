"""Translation of v1 requests to v2: renamed fields, formats that were strings."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from trapline.api.firecrawl.errors import Refusal
from trapline.api.firecrawl.requests.base_models import Wire

Body = dict[str, Any]
T = TypeVar("T", bound=Wire)

# They have no counterpart in v2.
_DROPPED: Final = ("agent", "geolocation", "isIframe", "__experimental_cache")
_OPTIONS_OF: Final = {
    "json": "jsonOptions",
    "extract": "extract",
    "changeTracking": "changeTrackingOptions",
}


def validate(model: type[T], body: Body) -> T:
    """Validate a translated body; errors are reported as for a v2 body."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        issues = error.errors(include_url=False)
        raise RequestValidationError(
            [{**issue, "loc": ("body", *issue["loc"])} for issue in issues]
        ) from None


def scrape(body: Mapping[str, Any]) -> Body:
    """Translate a scrape, or the scrape options of something else."""
    out = {name: value for name, value in body.items() if name not in _DROPPED}
    options = {name: out.pop(key, None) for name, key in _OPTIONS_OF.items()}
    if isinstance(out.get("formats"), list):
        out["formats"] = [_format(item, options) for item in out["formats"]]
    if not _flag(out, "parsePDF", default=True):
        out["parsers"] = []
    return out


def _flag(body: Body, name: str, *, default: bool = False) -> bool:
    """Remove a flag that v2 does not have, and return it."""
    value = body.pop(name, default)
    if not isinstance(value, bool):
        raise Refusal(400, f"{name} must be true or false.", "BAD_REQUEST")
    return value


def _format(item: Any, options: Mapping[str, Any]) -> Any:
    if item == "screenshot@fullPage":
        return {"type": "screenshot", "fullPage": True}
    if item in ("json", "extract"):
        values = options[item] or options["json"] or options["extract"] or {}
        return {"type": "json"} | {
            name: values[name] for name in ("schema", "prompt") if values.get(name) is not None
        }
    if item == "changeTracking":
        return {"type": "changeTracking"} | (options["changeTracking"] or {})
    return item


def crawl(body: Mapping[str, Any]) -> Body:
    """Translate a crawl."""
    out = dict(body)
    if isinstance(out.get("scrapeOptions"), dict):
        out["scrapeOptions"] = scrape(out["scrapeOptions"])
    back = out.pop("allowBackwardLinks", None)
    if back is not None:
        out.setdefault("crawlEntireDomain", back)
    depth = out.pop("maxDepth", None)
    if depth is not None:
        _check_depth(out.get("url"), depth)
        out.setdefault("maxDiscoveryDepth", depth)
    if _flag(out, "ignoreSitemap"):
        out["sitemap"] = "skip"
    return out


def _check_depth(url: Any, depth: Any) -> None:
    """Refuse a depth that the start page itself exceeds: v1 counts segments of the path."""
    path = urlsplit(url).path if isinstance(url, str) else ""
    segments = [part for part in path.split("/") if part]
    if isinstance(depth, int) and len(segments) > depth:
        raise Refusal(400, "URL depth exceeds the specified maxDepth", "BAD_REQUEST")


def map_(body: Mapping[str, Any]) -> Body:
    """Translate a map."""
    out = dict(body)
    skip, only = _flag(out, "ignoreSitemap"), _flag(out, "sitemapOnly")
    if skip or only:
        out["sitemap"] = "only" if only else "skip"
    return out


def search(body: Mapping[str, Any]) -> Body:
    """Translate a search."""
    out = dict(body)
    if isinstance(out.get("scrapeOptions"), dict):
        out["scrapeOptions"] = scrape(out["scrapeOptions"])
    out.setdefault("limit", 5)
    return out


def extract(body: Mapping[str, Any]) -> Body:
    """Translate an extraction."""
    out = dict(body)
    if isinstance(out.get("scrapeOptions"), dict):
        out["scrapeOptions"] = scrape(out["scrapeOptions"])
    return out
