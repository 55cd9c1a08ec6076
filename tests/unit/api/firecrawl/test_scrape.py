"""A request for a scrape that is in order is not given to FastAPI to read; nobody is to notice."""

from uuid import uuid4

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient

from trapline.api.firecrawl import scrape
from trapline.api.firecrawl.errors import FirecrawlRoute
from trapline.api.principal_cache import PrincipalCache
from trapline.api.rate_limit import RateLimits
from trapline.db.tenancy import Principal
from trapline.model import OrganisationId
from trapline.settings import Settings


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/x+json", "text/plain", None]
)
@pytest.mark.parametrize(
    "content",
    [
        b'{"url": "https://a.com/", "formats": ["markdown"]}',
        b'{"url": "https://a.com/", "nonsense": 1}',
        b'{"url": "https://a.com/", "timeout": 1000, "waitFor": 900}',
        b'{"url": "https://a.com/", "timeout": NaN}',
        b'{"url": "https://\\ud800.com/"}',
        b'{"url": 1}',
        b'["url"]',
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"url": "' + b"x" * (10 * 2**20) + b'"}',
        b"",
    ],
    ids=lambda content: f"{content[:40]!r}",
)
def test_a_body_that_is_read_straight_is_answered_as_any_other(
    content: bytes, content_type: str | None
) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    answers = [
        client.post("/v2/scrape", content=content, headers=headers)
        for client in (_swift(), _usual())
    ]
    assert answers[0].status_code == answers[1].status_code
    assert answers[0].json() == answers[1].json()
    assert answers[0].headers == answers[1].headers


def _swift() -> TestClient:
    return _asked_by_a_neighbour(scrape.router)


def _usual() -> TestClient:
    router = APIRouter(route_class=FirecrawlRoute)
    router.post("/v2/scrape")(scrape.scrape)
    return _asked_by_a_neighbour(router)


def _asked_by_a_neighbour(router: APIRouter) -> TestClient:
    """Serve without an engine: who gets as far as that is told so."""
    app = FastAPI()
    app.include_router(router)
    app.state.settings, app.state.services = Settings(), None
    app.state.rate_limits, app.state.principal_cache = RateLimits(None), PrincipalCache()
    app.state.principal_cache.put(None, Principal.administrator_of(OrganisationId(uuid4())))
    return TestClient(app, base_url="http://localhost")
