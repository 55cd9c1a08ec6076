"""/v2/team/*, /v2/concurrency-check: what an organisation uses, and how much of it is left."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Response

from trapline.api.access import Reader, Tenant
from trapline.api.firecrawl.answers import Done, responses
from trapline.api.firecrawl.documents import moment
from trapline.api.firecrawl.refusals import FirecrawlRoute, answer
from trapline.db.connection import Connection
from trapline.db.sql import tenancy as tenancy_queries
from trapline.model import OrganisationId
from trapline.pipeline import usage

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

# What a client is told where there is no limit: large, and still exact in every language.
UNLIMITED: Final = 999_999_999
ByKey = Annotated[bool, Query(alias="byApiKey")]


@router.get("/v2/concurrency-check", response_model=Done)
@router.get("/v1/concurrency-check", response_model=Done)
async def concurrency(who: Reader, conn: Tenant) -> Response:
    """Say how many tasks run now, and how many may."""
    now = await usage.at_work(conn, who.organisation_id)
    most = await _most(conn, who.organisation_id)
    return answer(200, success=True, concurrency=now.active, maxConcurrency=most)


@router.get("/v2/team/queue-status", response_model=Done)
@router.get("/v1/team/queue-status", response_model=Done)
async def queue_status(who: Reader, conn: Tenant) -> Response:
    """Say what waits and what runs."""
    now = await usage.at_work(conn, who.organisation_id)
    body = {
        "success": True,
        "jobsInQueue": now.active + now.waiting,
        "activeJobsInQueue": now.active,
        "waitingJobsInQueue": now.waiting,
        "maxConcurrency": await _most(conn, who.organisation_id),
        # The one null of the contract: nothing has succeeded lately.
        "mostRecentSuccess": moment(now.last_success),
    }
    return Response(msgspec.json.encode(body), media_type="application/json")


async def _most(conn: Connection, organisation_id: OrganisationId) -> int:
    row = await tenancy_queries.find_organisation(conn, reference=str(organisation_id))
    limit = None if row is None else row.max_concurrency
    return UNLIMITED if limit is None else limit


@router.get("/v2/team/credit-usage", response_model=Done)
@router.get("/v1/team/credit-usage", response_model=Done)
async def credit_usage(who: Reader, conn: Tenant) -> Response:
    """Say how many pages may still be fetched today; a page is a credit."""
    row = await tenancy_queries.find_organisation(conn, reference=str(who.organisation_id))
    plan = UNLIMITED if row is None or row.max_pages_per_day is None else row.max_pages_per_day
    used = (await usage.today(conn, who.organisation_id)).pages
    return answer(200, success=True, data=_left(plan, used, "Credits"))


@router.get("/v2/team/token-usage", response_model=Done)
@router.get("/v1/team/token-usage", response_model=Done)
async def token_usage(who: Reader, conn: Tenant) -> Response:
    """Say how many tokens the language model has taken today."""
    used = (await usage.today(conn, who.organisation_id)).tokens
    return answer(200, success=True, data=_left(UNLIMITED, used, "Tokens"))


def _left(plan: int, used: int, what: str) -> dict[str, Any]:
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        f"remaining{what}": max(plan - used, 0),
        f"plan{what}": plan,
        "billingPeriodStart": moment(start),
        "billingPeriodEnd": moment(start + usage.DAY),
    }


@router.get("/v2/team/credit-usage/historical", response_model=Done)
async def credits_by_month(who: Reader, conn: Tenant, by_key: ByKey = False) -> Response:
    """Say how many pages were fetched, month by month."""
    months = await usage.by_month(conn, who.organisation_id, by_key=by_key)
    return answer(200, success=True, periods=[_period(m, "creditsUsed", m.pages) for m in months])


@router.get("/v2/team/token-usage/historical", response_model=Done)
async def tokens_by_month(who: Reader, conn: Tenant, by_key: ByKey = False) -> Response:
    """Say how many tokens the language model has taken, month by month."""
    months = await usage.by_month(conn, who.organisation_id, by_key=by_key)
    return answer(200, success=True, periods=[_period(m, "tokensUsed", m.tokens) for m in months])


def _period(month: usage.Month, name: str, used: int) -> dict[str, Any]:
    said = {"startDate": moment(month.start), "endDate": moment(month.end), name: used}
    return said if month.key is None else said | {"apiKey": month.key}
