"""Usage accounting: an organisation's pages and tokens by day, counted once from the event log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from trapline.db.connection import Connection
from trapline.db.sql import usage as ledger
from trapline.deliver.event import Event
from trapline.model import ApiKeyId, OrganisationId
from trapline.pipeline.sql import usage as queries

DAY: Final = timedelta(days=1)
# A page that was fetched, and data that a language model made of some.
_COUNTED_TYPES: Final = frozenset({"page", "data"})
API_KEY: Final = "api_key"
"""The key of a job's metadata that names the API key of its request."""


@dataclass(frozen=True, slots=True)
class DailyUsage:
    """Pages that were fetched, and tokens of a language model."""

    pages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class MonthlyUsage:
    """The usage of one month, of all API keys or of one."""

    start: datetime
    end: datetime
    pages: int
    tokens: int
    key: str | None = None


@dataclass(frozen=True, slots=True)
class CurrentLoad:
    """How many tasks of an organisation run and wait now."""

    active: int
    waiting: int
    last_success: datetime | None


async def count_events(conn: Connection, events: Sequence[Event]) -> None:
    """Count the pages and tokens of events; call it in the transaction that consumes them."""
    pages = [event for event in events if event.type in _COUNTED_TYPES]
    if not pages:
        return
    rows = await queries.keys_of_jobs(conn, job_ids=list({page.job_id for page in pages}))
    keys = {row.job_id: row.api_key for row in rows}
    await ledger.add_usage(
        conn,
        organisation_ids=[page.organisation_id for page in pages],
        days=[page.created_at.astimezone(UTC).date() for page in pages],
        api_keys=[keys.get(page.job_id, "") for page in pages],
        pages=[int(page.type == "page") for page in pages],
        tokens=[_tokens(page.data) for page in pages],
    )


def _tokens(data: dict[str, Any]) -> int:
    tokens = data.get("tokens")
    return tokens if isinstance(tokens, int) else 0


async def add_tokens(
    conn: Connection, organisation_id: OrganisationId, api_key_id: ApiKeyId | None, tokens: int
) -> None:
    """Count the tokens of an answer that has no event."""
    await ledger.add_usage(
        conn,
        organisation_ids=[organisation_id],
        days=[datetime.now(UTC).date()],
        api_keys=[key_name(api_key_id)],
        pages=[0],
        tokens=[tokens],
    )


def key_name(api_key_id: UUID | None) -> str:
    return "" if api_key_id is None else str(api_key_id)


async def today(conn: Connection, organisation_id: OrganisationId) -> DailyUsage:
    row = await ledger.usage_since(
        conn, organisation_id=organisation_id, day=datetime.now(UTC).date()
    )
    return DailyUsage(row.pages, row.tokens)


async def by_month(
    conn: Connection, organisation_id: OrganisationId, *, by_key: bool = False
) -> list[MonthlyUsage]:
    rows = await ledger.usage_by_month(conn, organisation_id=organisation_id, by_key=by_key)
    return [
        MonthlyUsage(
            _midnight(row.month), _midnight(_following(row.month)), row.pages, row.tokens, row.key
        )
        for row in rows
    ]


def _following(month: date) -> date:
    return (month.replace(day=28) + timedelta(days=4)).replace(day=1)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


async def current_load(conn: Connection, organisation_id: OrganisationId) -> CurrentLoad:
    row = await queries.workload(conn, organisation_id=organisation_id)
    return CurrentLoad(row.active, max(row.remaining - row.active, 0), row.last_success)
