"""The HTTP application: every router, the same access rules and error answers for all."""

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import Scope

from trapline import __version__
from trapline.api import problems, rereading, tracing
from trapline.api.acquaintances import Acquaintances
from trapline.api.engine import Engine
from trapline.api.firecrawl import refusals
from trapline.api.firecrawl import routes as firecrawl
from trapline.api.limits import RateLimits
from trapline.api.native import (
    admin,
    applications,
    changes,
    duplicates,
    events,
    figures,
    health,
    intake,
    jobs,
    keys,
    logs,
    members,
    metrics,
    models,
    organisations,
    pages,
    progress,
    schedules,
    search,
    sites,
    sources,
    uploads,
    watchers,
)
from trapline.db.pool import Database
from trapline.errors import TraplineError
from trapline.knowledge.embedding.embedders import Embedders
from trapline.knowledge.searching import Searcher
from trapline.measure import Recorder
from trapline.pipeline.intake import Intake
from trapline.settings import Settings
from trapline.store.blobs import Blobs


def build(
    database: Database,
    settings: Settings,
    engine: Engine | None = None,
    recorder: Recorder | None = None,
) -> FastAPI:
    """Without an engine, what needs one is not available; without a recorder, nothing is recorded."""
    app = FastAPI(
        title="Trapline",
        version=__version__,
        description="Websites and files as clean, searchable, versioned content.",
        # Requests are measured by us; FastAPI would look for each whether somebody else wants to.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        responses={
            400: {"model": problems.Problem},
            401: {"model": problems.Problem},
            403: {"model": problems.Problem},
            404: {"model": problems.Problem},
            409: {"model": problems.Problem},
        },
    )
    app.state.database = database
    app.state.settings = settings
    app.state.engine = engine
    app.state.blobs = Blobs.of(settings)
    app.state.intake = Intake(database, settings, app.state.blobs)
    app.state.searcher = (
        Searcher.of(settings, Embedders(settings), recorder)
        if engine is None
        else engine.searching.searcher
    )
    app.state.limits = RateLimits(settings.rate_limit)
    app.state.acquaintances = Acquaintances()
    # First, since each route before the right one is tried: hundreds of scrapes a second feel that.
    for router in firecrawl.ROUTERS:
        app.include_router(router)
    for part in (
        health,
        organisations,
        members,
        keys,
        sites,
        pages,
        changes,
        duplicates,
        events,
        jobs,
        logs,
        metrics,
        figures,
        schedules,
        search,
        watchers,
        applications,
        sources,
        models,
        progress,
        intake,
        uploads,
    ):
        app.include_router(part.router)
    if settings.admin_key is not None:
        app.include_router(admin.router)
    problems.install(app)
    # Open to every page, as it carries no cookies: what counts is the key. Without keys, pages from
    # elsewhere are still turned away (access.py).
    app.add_middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["Retry-After", "X-Request-Id"],
    )
    app.add_middleware(rereading.ReadAgain, refuse=_refused)
    app.add_middleware(tracing.TraceRequests, recorder=recorder)
    return app


def _refused(scope: Scope, error: TraplineError) -> Response:
    """Answer in the words of the API that was asked."""
    if scope["path"].startswith(("/v1/", "/v2/")):
        return refusals.refused(error)
    return problems.refused(error)
