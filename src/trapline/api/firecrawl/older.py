"""Requests of Firecrawl's v1 in the words of v2: names that moved, formats that were strings."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from trapline.api.firecrawl.fields import Wire

Body = dict[str, Any]
T = TypeVar("T", bound=Wire)

# They have no counterpart, and did nothing that this server could do.
_DROPPED: Final = ("agent", "geolocation", "isIframe", "__experimental_cache")
_OPTIONS_OF: Final = {
    "json": "jsonOptions",
    "extract": "extract",
    "changeTracking": "changeTrackingOptions",
}


def read(model: type[T], body: Body) -> T:
    """Check a translated body; what is wrong with it is said as for a body of v2."""
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
        out["formats"] = [_format(wanted, options) for wanted in out["formats"]]
    if out.pop("parsePDF", True) is False:
        out["parsers"] = []
    return out


def _format(wanted: Any, options: Mapping[str, Any]) -> Any:
    if wanted == "screenshot@fullPage":
        return {"type": "screenshot", "fullPage": True}
    if wanted in ("json", "extract"):
        given = options[wanted] or options["json"] or options["extract"] or {}
        return {"type": "json"} | {
            name: given[name] for name in ("schema", "prompt") if given.get(name) is not None
        }
    if wanted == "changeTracking":
        return {"type": "changeTracking"} | (options["changeTracking"] or {})
    return wanted


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
        out.setdefault("maxDiscoveryDepth", depth)
    if out.pop("ignoreSitemap", False) is True:
        out["sitemap"] = "skip"
    return out


def mapped(body: Mapping[str, Any]) -> Body:
    """Translate a map."""
    out = dict(body)
    skip, only = out.pop("ignoreSitemap", False), out.pop("sitemapOnly", False)
    if skip is True or only is True:
        out["sitemap"] = "only" if only is True else "skip"
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
