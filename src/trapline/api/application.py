"""The HTTP application: all routers, their shared state and middleware."""

from typing import Final

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import Scope

from trapline import __version__
from trapline.api import problem_details, read_retry, request_tracing
from trapline.api.firecrawl import errors
from trapline.api.firecrawl import routes as firecrawl
from trapline.api.native.admin import (
    admin_key,
    admin_statistics,
    audit_trail,
    health,
    keys,
    members,
    metrics,
    organisations,
)
from trapline.api.native.content import changes, duplicates, pages, sites
from trapline.api.native.inbound import changedetection, firecrawl_webhook
from trapline.api.native.jobs import job_events, jobs, logs, schedules
from trapline.api.native.knowledge import (
    applications,
    models,
    search,
    source_events,
    sources,
    uploads,
)
from trapline.api.principal_cache import PrincipalCache
from trapline.api.rate_limit import RateLimits
from trapline.api.services import Services
from trapline.db.pool import Database
from trapline.errors import TraplineError
from trapline.knowledge.embedding.embedders import Embedders
from trapline.knowledge.search import Searcher
from trapline.measure import Recorder
from trapline.pipeline.ingest.firecrawl_inbox import FirecrawlInbox
from trapline.settings import Settings
from trapline.store.blobs import BlobStore

# The routers in the order in which requests try them: the Firecrawl API first, which gets hundreds of
# scrapes a second.
_ROUTERS: Final = (
    *firecrawl.ROUTERS,
    health.router,
    organisations.router,
    members.router,
    keys.router,
    audit_trail.router,
    sites.router,
    pages.router,
    changes.router,
    duplicates.router,
    job_events.router,
    jobs.router,
    logs.router,
    metrics.router,
    admin_statistics.router,
    schedules.router,
    search.router,
    changedetection.router,
    applications.router,
    sources.router,
    models.router,
    source_events.router,
    firecrawl_webhook.router,
    uploads.router,
)


def build(
    database: Database,
    settings: Settings,
    services: Services | None = None,
    recorder: Recorder | None = None,
) -> FastAPI:
    """Return the application. Without services, routes that need a worker answer 503; without a
    recorder, no request is recorded.
    """
    app = FastAPI(
        title="Trapline",
        version=__version__,
        description="Websites and files as clean, searchable, versioned content.",
        # We measure requests ourselves; FastAPI would look for another tracer at each.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        responses={
            status: {"model": problem_details.Problem} for status in (400, 401, 403, 404, 409)
        },
    )
    _set_state(app, database, settings, services, recorder)
    for router in _ROUTERS:
        app.include_router(router)
    if settings.server.admin_key is not None:
        app.include_router(admin_key.router)
    problem_details.install(app)
    _add_middleware(app, recorder)
    return app


def _set_state(
    app: FastAPI,
    database: Database,
    settings: Settings,
    services: Services | None,
    recorder: Recorder | None,
) -> None:
    """Give the handlers their collaborators: the worker's own, where one runs in this process."""
    app.state.database = database
    app.state.settings = settings
    app.state.services = services
    if services is None:
        app.state.blobs = BlobStore.of(settings.blobs)
        app.state.inbox = FirecrawlInbox(database, settings, app.state.blobs)
        embedders = Embedders(settings.embedding)
        app.state.searcher = Searcher.of(settings.vectors, embedders, recorder)
    else:
        app.state.blobs = services.blobs
        app.state.inbox = services.inbox
        app.state.searcher = services.web_search.searcher
    app.state.rate_limits = RateLimits(settings.server.rate_limit)
    app.state.principal_cache = PrincipalCache()


def _add_middleware(app: FastAPI, recorder: Recorder | None) -> None:
    # Open to every page, because a request carries no cookies and only its key counts. Without keys,
    # pages from elsewhere are still refused (principal.py).
    app.add_middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["Retry-After", "X-Request-Id"],
    )
    app.add_middleware(read_retry.ReadRetry, refuse=_error_response)
    app.add_middleware(request_tracing.TraceRequests, recorder=recorder)


def _error_response(scope: Scope, error: TraplineError) -> Response:
    """Answer in the form of the API that the path belongs to."""
    if scope["path"].startswith(("/v1/", "/v2/")):
        return errors.error_response(error)
    return problem_details.error_response(error)
