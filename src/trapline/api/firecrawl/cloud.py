"""What only Firecrawl's cloud has: a clear answer instead of an unknown address."""

from typing import Final

from fastapi import APIRouter, Request, Response

from trapline.api.firecrawl.answers import responses
from trapline.api.firecrawl.refusals import FirecrawlRoute, Refusal

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses(501))
nowhere = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"])
"""Whatever no other route has taken: it comes last."""

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


async def only_there(request: Request) -> Response:
    """Say that this is a part of Firecrawl's cloud."""
    raise Refusal(
        501,
        f"{request.url.path} is a service of Firecrawl's cloud; this server does not have it.",
        "NOT_SUPPORTED",
    )


async def unknown(request: Request) -> Response:
    """Say that there is nothing at this address."""
    raise Refusal(404, f"Cannot {request.method} {request.url.path}")


for _version in ("v1", "v2"):
    nowhere.add_api_route(
        f"/{_version}/{{rest:path}}", unknown, methods=_METHODS, include_in_schema=False
    )
    for _part in _PARTS:
        for _path in (f"/{_version}/{_part}", f"/{_version}/{_part}/{{rest:path}}"):
            router.add_api_route(_path, only_there, methods=_METHODS, include_in_schema=False)
    for _path in (
        f"/{_version}/scrape/{{job_id}}/interact",
        f"/{_version}/search/{{job_id}}/feedback",
    ):
        router.add_api_route(_path, only_there, methods=_METHODS, include_in_schema=False)
