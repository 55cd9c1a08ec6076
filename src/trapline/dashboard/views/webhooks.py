"""`/webhooks`: deliveries with their attempts, and sending them again."""

from operator import attrgetter
from typing import Annotated, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from trapline.api import pagination
from trapline.api.pagination import Cursor
from trapline.dashboard import rendering
from trapline.dashboard.viewer import Changing, CurrentViewer, Editor, Reading, note_detail
from trapline.db.keyset import LAST_TIME, Order
from trapline.deliver import subscriptions
from trapline.deliver.sql import webhooks as queries
from trapline.model import JobId

router = APIRouter(prefix="/webhooks")

State = Literal["pending", "aside", "delivered", "dead"]
_PAGE: Final = 50
_NEWEST: Final = Order(
    queries.deliveries_newest, ("at", "before"), attrgetter("created_at", "id"), LAST_TIME
)


@router.get("")
async def list_deliveries(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    state: State | None = None,
    job_id: UUID | None = None,
    cursor: Cursor = None,
) -> Response:
    """List deliveries, newest first."""
    filters = {
        "organisation_id": viewer.principal.organisation_id,
        "state": state,
        "job_id": None if job_id is None else JobId(job_id),
    }
    rows, following = await pagination.read_order(conn, _NEWEST, filters, cursor, _PAGE)
    return rendering.page(
        request,
        viewer,
        "webhooks.html",
        rows=rows,
        next=following,
        state=state,
        job_id=job_id,
    )


@router.get("/{delivery_id}")
async def show_delivery(
    request: Request, conn: Reading, viewer: CurrentViewer, delivery_id: UUID
) -> Response:
    """Show a delivery: its event, its receiver and how the last attempt ended."""
    row = await subscriptions.get(conn, viewer.principal.organisation_id, delivery_id)
    return rendering.page(request, viewer, "webhook.html", row=row)


@router.post("/replay")
async def replay_deliveries(
    request: Request,
    conn: Changing,
    viewer: Editor,
    delivery_id: Annotated[UUID | None, Form()] = None,
    job_id: Annotated[UUID | None, Form()] = None,
    state: Annotated[Literal["aside", "delivered", "dead"] | None, Form()] = None,
) -> Response:
    """Send deliveries again: one, or those of a job or of a state."""
    note_detail(request, delivery_id=str(delivery_id), job_id=str(job_id), state=state)
    count = await subscriptions.replay(
        conn,
        viewer.principal.organisation_id,
        delivery_id=delivery_id,
        job_id=None if job_id is None else JobId(job_id),
        state=state,
    )
    return rendering.redirect(request, "/webhooks", f"{count} to be sent again.")
