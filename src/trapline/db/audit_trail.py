"""The audit trail of an organisation: who changed what, and when, written with the change itself."""

from collections.abc import Mapping
from datetime import timedelta
from operator import attrgetter
from typing import Any, Final, Literal

from trapline.db.connection import Connection
from trapline.db.keyset import LAST_NUMBER, KeysetList, Order
from trapline.db.pool import Database
from trapline.db.sql import audit_trail as queries
from trapline.db.sql.audit_trail import AuditEntryRow
from trapline.db.tenancy import Principal
from trapline.model import OrganisationId

Channel = Literal["api", "dashboard"]
Sort = Literal["newest"]

_RETENTION: Final = timedelta(days=400)
_LONGEST_TARGET: Final = 500
_ORDERS: Final[Mapping[Sort, Order[AuditEntryRow]]] = {
    "newest": Order(queries.audit_entries, ("before",), attrgetter("id"), LAST_NUMBER)
}


async def record(  # noqa: PLR0913 (who, how, what, on what, from where)
    conn: Connection,
    principal: Principal,
    channel: Channel,
    action: str,
    *,
    target: str | None = None,
    detail: Mapping[str, Any] | None = None,
    client: str | None = None,
) -> None:
    """Add an entry, in the transaction of the change that it tells of."""
    await queries.add_audit_entry(
        conn,
        organisation_id=principal.organisation_id,
        api_key_id=principal.api_key_id,
        channel=channel,
        action=action,
        target=None if target is None else target[:_LONGEST_TARGET].replace("\x00", ""),
        detail=dict(detail or {}),
        client=client,
    )


def entries_of(
    organisation_id: OrganisationId,
    *,
    action: str | None = None,
    actor: str | None = None,
    target: str | None = None,
) -> KeysetList[Sort, AuditEntryRow]:
    filters = {"action": action, "actor": actor, "target": target}
    return KeysetList(_ORDERS, {"organisation_id": organisation_id} | filters)


async def drop_old_entries(database: Database) -> int:
    """Delete entries that are older than 400 days."""
    async with database.system_tx() as conn:
        return await queries.drop_audit_entries(conn, keep=_RETENTION)
