"""Measurements as rows: one transaction for a batch and the sums that it adds to."""

from collections.abc import Sequence
from typing import Final

import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.measure.rows import LONGEST_ERROR, LONGEST_URL, ApiRequest, Operation, text
from trapline.measure.sql import recorder as queries
from trapline.model import JobId, OrganisationId

_LONGEST_NAME: Final = 100
_LONGEST_TYPE: Final = 50
_LONGEST_METHOD: Final = 10


async def write_operations(database: Database, operations: Sequence[Operation]) -> None:
    """Write a batch, and add it to what its jobs took."""
    async with database.system_tx() as conn:
        await queries.add_operations(
            conn,
            times=[o.at for o in operations],
            organisation_ids=[o.organisation_id for o in operations],
            types=[o.type[:_LONGEST_TYPE] for o in operations],
            names=[text(o.name, _LONGEST_NAME) or "" for o in operations],
            milliseconds=[o.milliseconds for o in operations],
            errors=[text(o.error, LONGEST_ERROR) for o in operations],
            request_ids=[o.request_id for o in operations],
            job_ids=[o.job_id for o in operations],
            task_ids=[o.task_id for o in operations],
            document_urls=[text(o.document_url, LONGEST_URL) for o in operations],
            extras=[_plain(o.extra) for o in operations],
        )
        await _add_to_jobs(conn, operations)


async def _add_to_jobs(conn: Connection, operations: Sequence[Operation]) -> None:
    sums: dict[tuple[JobId, str], list[float]] = {}
    owners: dict[JobId, OrganisationId] = {}
    for operation in operations:
        if operation.job_id is None:
            continue
        owners[operation.job_id] = operation.organisation_id
        row = sums.setdefault((operation.job_id, operation.type[:_LONGEST_TYPE]), [0, 0, 0.0])
        row[0] += 1
        row[1] += operation.error is not None
        row[2] += operation.milliseconds
    if not sums:
        return
    await queries.add_job_times(
        conn,
        job_ids=[job for job, _ in sums],
        types=[kind for _, kind in sums],
        organisation_ids=[owners[job] for job, _ in sums],
        operations=[int(row[0]) for row in sums.values()],
        failures=[int(row[1]) for row in sums.values()],
        milliseconds=[row[2] for row in sums.values()],
    )


async def write_requests(database: Database, requests: Sequence[ApiRequest]) -> None:
    """Write a batch of requests."""
    async with database.system_tx() as conn:
        await queries.add_requests(
            conn,
            times=[r.at for r in requests],
            organisation_ids=[r.organisation_id for r in requests],
            methods=[r.method[:_LONGEST_METHOD] for r in requests],
            paths=[text(r.path, LONGEST_URL) or "/" for r in requests],
            routes=[r.route for r in requests],
            statuses=[r.status for r in requests],
            milliseconds=[r.milliseconds for r in requests],
            request_ids=[r.request_id for r in requests],
            clients=[text(r.client, 50) for r in requests],
            user_agents=[text(r.user_agent, LONGEST_URL) for r in requests],
        )


def _plain(extra: object) -> object:
    return None if extra is None else msgspec.to_builtins(extra)
