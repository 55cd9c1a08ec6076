"""`/hosts`: the gates of hosts: gap, tasks in flight, last answers, robots.txt as it was read."""

from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from trapline.api import pagination
from trapline.api.pagination import Cursor
from trapline.dashboard import rendering
from trapline.dashboard.viewer import CurrentViewer, Reading
from trapline.db.keyset import FIRST_NAME, Order
from trapline.db.pool import Database
from trapline.errors import NotFound
from trapline.pipeline.sql import hosts as queries

router = APIRouter(prefix="/hosts")

_PAGE: Final = 50
_BY_NAME: Final = Order(queries.list_hosts, ("after",), attrgetter("name"), FIRST_NAME)
_URLS_READ: Final = 500


@router.get("")
async def list_hosts(
    request: Request, conn: Reading, viewer: CurrentViewer, cursor: Cursor = None
) -> Response:
    """List the hosts of an organisation by name."""
    filters = {"organisation_id": viewer.principal.organisation_id}
    rows, following = await pagination.read_order(conn, _BY_NAME, filters, cursor, _PAGE)
    return rendering.page(
        request, viewer, "hosts.html", rows=rows, next=following, now=datetime.now(UTC)
    )


@router.get("/{name}")
async def show_host(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    name: Annotated[str, Path(max_length=300)],
) -> Response:
    """Show a host."""
    host = await queries.get_host(
        conn, organisation_id=viewer.principal.organisation_id, name=name.replace("\x00", "")
    )
    if host is None:
        raise NotFound(f"No job has met the host {name!r}.")
    visits = await queries.latest_visits(conn, host_id=host.id, among=_URLS_READ, most=_PAGE)
    # Shared by all organisations, so only the system reads it: for a host that this one has met.
    database: Database = request.app.state.database
    async with database.system_tx() as system:
        robots = await queries.robots_of_host(
            system, origins=[f"http://{host.name}", f"https://{host.name}"]
        )
    return rendering.page(
        request,
        viewer,
        "host.html",
        host=host,
        visits=visits,
        robots=robots,
        now=datetime.now(UTC),
    )
