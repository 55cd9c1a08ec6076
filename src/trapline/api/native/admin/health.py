"""`/health` for load balancers and people, `/metrics` for Prometheus."""

from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel

from trapline.api.services import Services
from trapline.db.pool import Database
from trapline.db.resource_shortage import low_disk_space
from trapline.ephemeral import redis
from trapline.errors import DatabaseUnavailable
from trapline.settings import Settings

router = APIRouter()

_SOUND: Final = frozenset({"connected", "writable"})


class Health(BaseModel):
    """Whether the parts that Trapline stands on answer."""

    status: Literal["healthy", "unhealthy"]
    timestamp: datetime
    checks: dict[str, str]
    browser: dict[str, Any] | None = None
    """The pool of browsers in this process; absent where none has run."""

    model_config = {
        "json_schema_extra": {
            "example": {
                "status": "healthy",
                "timestamp": "2026-11-15T10:00:00Z",
                "checks": {"database": "connected", "disk": "writable"},
            }
        }
    }


@router.get(
    "/health",
    tags=["operation"],
    responses={503: {"model": Health}},
    response_model_exclude_none=True,
)
async def health(request: Request, response: Response) -> Health:
    """Check the database, its disk space (and Redis, when one is configured)."""
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    checks = {"database": await _database(database), "disk": _disk(database)}
    if settings.server.redis_url is not None:
        answered = await redis.ping(settings.server.redis_url.get_secret_value())
        checks["redis"] = "connected" if answered else "disconnected"
    healthy = all(state in _SOUND for state in checks.values())
    if not healthy:
        response.status_code = 503
    return Health(
        status="healthy" if healthy else "unhealthy",
        timestamp=datetime.now(UTC).replace(microsecond=0),
        checks=checks,
        browser=_browser(request),
    )


def _browser(request: Request) -> dict[str, Any] | None:
    services: Services | None = request.app.state.services
    if services is None or services.browser is None:
        return None
    return msgspec.to_builtins(services.browser.status(), str_keys=True)  # type: ignore[no-any-return]


@router.get("/metrics", tags=["operation"], response_class=Response)
async def metrics() -> Response:
    """Answer with all counters and histograms in Prometheus' text format."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def _disk(database: Database) -> str:
    """Say whether PostgreSQL can store: by its last refusal, or by the disk of the embedded server."""
    settings = database.settings.database
    embedded = settings.external_dsn() is None
    low = low_disk_space(settings.home) if embedded else None
    return database.shortage.message or low or "writable"


async def _database(database: Database) -> str:
    try:
        async with database.system_tx() as conn:
            await conn.execute("SELECT 1")
    except DatabaseUnavailable:
        return "disconnected"
    return "connected"
