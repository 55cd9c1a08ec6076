"""`/playground`: scrape, crawl, map, search and extract, with the request as code to copy."""

import json
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Form, Query, Request
from pydantic import ValidationError
from starlette.responses import Response

from trapline.api.dependencies import services_of
from trapline.api.firecrawl import crawl, extract, map, scrape, search  # noqa: A004 (as its module is called)
from trapline.api.firecrawl.requests.crawl_request import CrawlBody
from trapline.api.principal import ScrapePrincipal
from trapline.dashboard import code_samples, rendering
from trapline.dashboard.viewer import CurrentViewer, Editor, Viewer, note_detail, record
from trapline.db.pool import Database
from trapline.errors import InvalidInput, TraplineError

router = APIRouter(prefix="/playground")

Verb = Literal["scrape", "crawl", "map", "search", "extract"]
_BODIES: Final[dict[str, Any]] = {
    "scrape": scrape.ScrapeBody,
    "crawl": CrawlBody,
    "map": map.MapBody,
    "search": search.SearchBody,
    "extract": extract.ExtractBody,
}
_EXAMPLES: Final[dict[Verb, dict[str, Any]]] = {
    "scrape": {"url": "https://example.com/", "formats": ["markdown", "links"]},
    "crawl": {"url": "https://example.com/", "limit": 20, "maxDiscoveryDepth": 2},
    "map": {"url": "https://example.com/", "limit": 100},
    "search": {"query": "opening hours", "limit": 5},
    "extract": {"urls": ["https://example.com/"], "prompt": "Who runs this site?"},
}


@router.get("")
async def show_playground(
    request: Request, viewer: CurrentViewer, verb: Annotated[Verb, Query()] = "scrape"
) -> Response:
    """Show a request to try."""
    return _page(request, viewer, verb, json.dumps(_EXAMPLES[verb], indent=2))


@router.post("")
async def try_request(
    request: Request,
    viewer: Editor,
    verb: Annotated[Verb, Form()],
    body: Annotated[str, Form(max_length=100_000)],
) -> Response:
    """Do what the API would do, and show its answer."""
    try:
        answer = await _answer(request, viewer, verb, body)
    except TraplineError as error:
        return _page(request, viewer, verb, body, error=error.message)
    note_detail(request, verb=verb)
    database: Database = request.app.state.database
    async with database.tenant_tx(viewer.principal.organisation_id) as conn:
        await record(request, conn, viewer.principal)
    return _page(request, viewer, verb, body, answer=answer)


async def _answer(request: Request, viewer: Viewer, verb: Verb, body: str) -> Any:
    services = services_of(request)
    parsed = _parsed(verb, body)
    principal = viewer.principal
    match verb:
        case "scrape":
            writer = ScrapePrincipal(principal, None, request)
            response = await scrape.scrape(parsed, writer, services)
        case "crawl":
            response = await crawl.start(request, parsed, principal, services)
        case "map":
            response = await map.map_site(parsed, principal, services)
        case "search":
            response = await search.search(parsed, principal, services)
        case "extract":
            response = await extract.start(parsed, principal, services)
    return msgspec.json.decode(bytes(response.body))


def _parsed(verb: Verb, body: str) -> Any:
    try:
        return _BODIES[verb].model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{where or 'body'}: {first['msg']}") from None


def _page(
    request: Request,
    viewer: Viewer,
    verb: Verb,
    body: str,
    *,
    answer: Any = None,
    error: str | None = None,
) -> Response:
    base = str(request.base_url).rstrip("/") + rendering.prefix_of(request)
    return rendering.page(
        request,
        viewer,
        "playground.html",
        verb=verb,
        body=body,
        answer=answer,
        error=error,
        documents=_formats(answer),
        job_id=answer.get("id") if isinstance(answer, dict) and verb == "crawl" else None,
        samples=code_samples.samples(base, verb, body),
    )


def _formats(answer: Any) -> dict[str, str]:
    """Return the text formats of a scraped document, by name."""
    document = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(document, dict):
        return {}
    return {name: value for name, value in document.items() if isinstance(value, str)}
