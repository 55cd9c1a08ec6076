"""/v2/team/*, /v2/concurrency-check: the usage of an organisation, and what is left of its limits."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Response

from trapline.api.firecrawl.errors import FirecrawlRoute, answer
from trapline.api.firecrawl.response_models import Done, responses
from trapline.api.principal import Reader, Tenant
from trapline.db.connection import Connection
from trapline.db.sql import tenancy as tenancy_queries
from trapline.deliver.firecrawl_document import iso_time
from trapline.model import OrganisationId
from trapline.pipeline.reports import usage

router = APIRouter(route_class=FirecrawlRoute, tags=["firecrawl"], responses=responses())

# What a client is told where there is no limit: large, and still exact in every language.
UNLIMITED: Final = 999_999_999
ByKey = Annotated[bool, Query(alias="byApiKey")]


@router.get("/v2/concurrency-check", response_model=Done)
@router.get("/v1/concurrency-check", response_model=Done)
async def concurrency(principal: Reader, conn: Tenant) -> Response:
    """Return the number of running tasks and the concurrency limit."""
    now = await usage.current_load(conn, principal.organisation_id)
    most = await _max_concurrency(conn, principal.organisation_id)
    return answer(200, success=True, concurrency=now.active, maxConcurrency=most)


@router.get("/v2/team/queue-status", response_model=Done)
@router.get("/v1/team/queue-status", response_model=Done)
async def queue_status(principal: Reader, conn: Tenant) -> Response:
    """Return the numbers of queued and running tasks."""
    now = await usage.current_load(conn, principal.organisation_id)
    body = {
        "success": True,
        "jobsInQueue": now.active + now.waiting,
        "activeJobsInQueue": now.active,
        "waitingJobsInQueue": now.waiting,
        "maxConcurrency": await _max_concurrency(conn, principal.organisation_id),
        # The one null of the contract: nothing has succeeded lately.
        "mostRecentSuccess": iso_time(now.last_success),
    }
    return Response(msgspec.json.encode(body), media_type="application/json")


async def _max_concurrency(conn: Connection, organisation_id: OrganisationId) -> int:
    row = await tenancy_queries.find_organisation(conn, reference=str(organisation_id))
    limit = None if row is None else row.max_concurrency
    return UNLIMITED if limit is None else limit


@router.get("/v2/team/credit-usage", response_model=Done)
@router.get("/v1/team/credit-usage", response_model=Done)
async def credit_usage(principal: Reader, conn: Tenant) -> Response:
    """Return how many pages may still be fetched today; a page is a credit."""
    row = await tenancy_queries.find_organisation(conn, reference=str(principal.organisation_id))
    plan = UNLIMITED if row is None or row.max_pages_per_day is None else row.max_pages_per_day
    used = (await usage.today(conn, principal.organisation_id)).pages
    return answer(200, success=True, data=_balance(plan, used, "Credits"))


@router.get("/v2/team/token-usage", response_model=Done)
@router.get("/v1/team/token-usage", response_model=Done)
async def token_usage(principal: Reader, conn: Tenant) -> Response:
    """Return how many tokens the language model has used today."""
    used = (await usage.today(conn, principal.organisation_id)).tokens
    return answer(200, success=True, data=_balance(UNLIMITED, used, "Tokens"))


def _balance(plan: int, used: int, what: str) -> dict[str, Any]:
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        f"remaining{what}": max(plan - used, 0),
        f"plan{what}": plan,
        "billingPeriodStart": iso_time(start),
        "billingPeriodEnd": iso_time(start + usage.DAY),
    }


@router.get("/v2/team/credit-usage/historical", response_model=Done)
@router.get("/v1/team/credit-usage/historical", response_model=Done)
async def credits_by_month(principal: Reader, conn: Tenant, by_key: ByKey = False) -> Response:
    """Return the number of fetched pages by month."""
    months = await usage.by_month(conn, principal.organisation_id, by_key=by_key)
    return answer(200, success=True, periods=[_period(m, "creditsUsed", m.pages) for m in months])


@router.get("/v2/team/token-usage/historical", response_model=Done)
@router.get("/v1/team/token-usage/historical", response_model=Done)
async def tokens_by_month(principal: Reader, conn: Tenant, by_key: ByKey = False) -> Response:
    """Return the tokens that the language model has used, by month."""
    months = await usage.by_month(conn, principal.organisation_id, by_key=by_key)
    return answer(200, success=True, periods=[_period(m, "tokensUsed", m.tokens) for m in months])


def _period(month: usage.MonthlyUsage, name: str, used: int) -> dict[str, Any]:
    period = {"startDate": iso_time(month.start), "endDate": iso_time(month.end), name: used}
    return period if month.key is None else period | {"apiKey": month.key}
