"""Reports of watchers: changedetection.io says that a page changed, and we look again.

The report, the job that looks again and its first task are written together. A report that is sent
twice is the same event and starts nothing.
"""

import hashlib
import hmac
from dataclasses import dataclass

from trapline.db.connection import Connection
from trapline.errors import Conflict
from trapline.model import JobId, OrganisationId
from trapline.pipeline import submit
from trapline.pipeline.options import PageOptions, VisitOptions
from trapline.store import changes
from trapline.store.changes import Report
from trapline.store.sql import changes as queries


@dataclass(frozen=True, slots=True)
class Received:
    """What became of a report."""

    change_id: int
    rescrape_job_id: JobId
    rescrape_status: str
    repeated: bool = False


def secret_of(master: str, organisation_id: OrganisationId) -> str:
    """Return the secret with which an organisation's watchers sign; it says nothing of others'."""
    message = f"changedetection {organisation_id}"
    return hmac.new(master.encode(), message.encode(), hashlib.sha256).hexdigest()


def digest_of(body: bytes) -> bytes:
    """Return what tells a repeated report: its very bytes."""
    return hashlib.sha256(body).digest()


async def receive(conn: Connection, organisation_id: OrganisationId, report: Report) -> Received:
    """Store a report and look again at its page; or find what was stored before."""
    before = await _before(conn, organisation_id, report)
    if before is not None:
        return before
    options = PageOptions.parse(url=report.watch_url, force=True, index=True)
    job_id = await submit.batch(
        conn,
        organisation_id,
        [options.url],
        VisitOptions(force=True, index=True),
        metadata={"watch_id": report.watch_id, "trigger": "watch"},
    )
    change_id = await changes.add_report(conn, organisation_id, report, job_id)
    if change_id is None:
        # Its twin came in between: the whole transaction goes, and the sender asks again.
        raise Conflict("The same report is being stored already.")
    return Received(change_id, job_id, "queued")


async def _before(
    conn: Connection, organisation_id: OrganisationId, report: Report
) -> Received | None:
    row = await queries.find_report(conn, organisation_id=organisation_id, report=report.digest)
    if row is None or row.rescrape_job_id is None:
        return None
    return Received(
        row.id, JobId(row.rescrape_job_id), row.rescrape_status or "queued", repeated=True
    )
