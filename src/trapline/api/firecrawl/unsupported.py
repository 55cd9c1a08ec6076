"""Endpoints that only Firecrawl's cloud has: 501 with a reason instead of 404."""

from typing import Final

from fastapi import APIRouter, Request, Response

from trapline.api.firecrawl.errors import FirecrawlRoute, Refusal
from trapline.api.firecrawl.response_models import responses

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses(501))
unknown_router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"])
"""The last router: matches every other path."""

_PARTS: Final = (
    "agent",
    "browser",
    "interact",
    "feedback",
    "search/research",
    "search/developer",
    "search/gov",
    "team/activity",
    "team/threat-protection",
    "team/siem",
    "exchange",
    "slack",
    "keyless",
    "mcp",
    "support",
    "llmstxt",
    "deep-research",
    "parse/upload-url",
    "parse/upload",
)
_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]


async def cloud_only(request: Request) -> Response:
    """Answer 501: only Firecrawl's cloud has this endpoint."""
    raise Refusal(
        501,
        f"{request.url.path} is a service of Firecrawl's cloud; this server does not have it.",
        "NOT_SUPPORTED",
    )


async def unknown(request: Request) -> Response:
    """Answer 404 for an unknown path."""
    raise Refusal(404, f"Cannot {request.method} {request.url.path}")


for _version in ("v1", "v2"):
    unknown_router.add_api_route(
        f"/{_version}/{{rest:path}}", unknown, methods=_METHODS, include_in_schema=False
    )
    for _part in _PARTS:
        for _path in (f"/{_version}/{_part}", f"/{_version}/{_part}/{{rest:path}}"):
            router.add_api_route(_path, cloud_only, methods=_METHODS, include_in_schema=False)
    for _path in (
        f"/{_version}/scrape/{{job_id}}/interact",
        f"/{_version}/search/{{job_id}}/feedback",
    ):
        router.add_api_route(_path, cloud_only, methods=_METHODS, include_in_schema=False)
