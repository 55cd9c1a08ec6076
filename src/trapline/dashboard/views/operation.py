"""`/agents`, `/database`, `/settings`: workers and maintenance, the database's statistics, settings in force."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from fastapi import APIRouter, Request
from pydantic import SecretStr
from starlette.responses import Response

from trapline.dashboard import rendering
from trapline.dashboard.viewer import CurrentViewer, Operator, Reading
from trapline.db.pool import Database
from trapline.pipeline.reports import db_statistics
from trapline.queue import audit
from trapline.queue.sql import agents
from trapline.settings import Settings

router = APIRouter()

_AGENTS: Final = 50
_ROWS: Final = 20


@router.get("/agents")
async def show_agents(request: Request, conn: Reading, viewer: CurrentViewer) -> Response:
    """Show the workers and the duties of maintenance."""
    return rendering.page(
        request,
        viewer,
        "agents.html",
        agents=await agents.list_agents(conn, most=_AGENTS),
        duties=await agents.list_duties(conn),
    )


@router.get("/database")
async def show_database(request: Request, viewer: Operator, check: bool = False) -> Response:
    """Show what the database is busy with; on demand, recompute every counter from the rows."""
    database: Database = request.app.state.database
    async with database.owner() as conn:
        found = await db_statistics.read_statistics(conn, now=datetime.now(UTC), most=_ROWS)
        problems = None
        if check:
            async with conn.transaction(isolation="repeatable_read", readonly=True):
                problems = await audit.audit(conn)
    return rendering.page(
        request, viewer, "database.html", found=found, problems=problems, check=check
    )


@router.get("/settings")
async def show_settings(request: Request, viewer: Operator) -> Response:
    """Show the settings in force; secrets are only said to be set."""
    settings: Settings = request.app.state.settings
    return rendering.page(request, viewer, "settings.html", groups=list(_groups(settings)))


def _groups(settings: Settings) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for name, group in Settings.groups().items():
        values = getattr(settings, name)
        yield (
            (group.__doc__ or name).rstrip("."),
            [
                {
                    "variable": group.variable(field),
                    "value": _shown(getattr(values, field)),
                    "changed": getattr(values, field)
                    != info.get_default(call_default_factory=True),
                    "description": info.description or "",
                }
                for field, info in group.model_fields.items()
            ],
        )


def _shown(value: Any) -> str:
    if isinstance(value, SecretStr):
        return "set (secret)"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "not set" if value is None else str(value)
