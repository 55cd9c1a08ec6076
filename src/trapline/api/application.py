"""The HTTP application: every router, the same access rules and error answers for all."""

from fastapi import FastAPI

from trapline import __version__
from trapline.api import problems, tracing
from trapline.api.native import admin, health, jobs, keys, logs, members, organisations, schedules
from trapline.db.pool import Database
from trapline.pipeline.scraping import Scraper
from trapline.settings import Settings


def build(database: Database, settings: Settings, scraper: Scraper | None = None) -> FastAPI:
    """Without a scraper, what needs one is not available."""
    app = FastAPI(
        title="Trapline",
        version=__version__,
        description="Websites and files as clean, searchable, versioned content.",
        responses={
            400: {"model": problems.Problem},
            401: {"model": problems.Problem},
            403: {"model": problems.Problem},
        },
    )
    app.state.database = database
    app.state.settings = settings
    app.state.scraper = scraper
    for part in (health, organisations, members, keys, jobs, schedules, logs):
        app.include_router(part.router)
    if settings.admin_key is not None:
        app.include_router(admin.router)
    problems.install(app)
    app.add_middleware(tracing.TraceRequests)
    return app
