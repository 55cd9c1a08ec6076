"""Webhooks of changedetection.io: a report that a page changed starts a new visit of the page.

One transaction writes the report, the job and its task. A repeated report starts nothing.
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
from trapline.store.changes import ChangeReport
from trapline.store.sql import changes as queries


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report in the database, and the job that it started."""

    change_id: int
    rescrape_job_id: JobId
    rescrape_status: str
    repeated: bool = False


def signing_secret(master: str, organisation_id: OrganisationId) -> str:
    """Derive the secret that signs an organisation's reports from the server's own secret."""
    message = f"changedetection {organisation_id}"
    return hmac.new(master.encode(), message.encode(), hashlib.sha256).hexdigest()


def report_digest(body: bytes) -> bytes:
    """Return the digest that identifies a repeated report."""
    return hashlib.sha256(body).digest()


async def receive(
    conn: Connection, organisation_id: OrganisationId, report: ChangeReport
) -> StoredReport:
    """Store a report and queue a visit of its page; a repeated report returns the stored one."""
    stored = await _find_stored(conn, organisation_id, report)
    if stored is not None:
        return stored
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
        # Its duplicate was stored meanwhile: the transaction is rolled back, and the sender retries.
        raise Conflict("The same report is being stored already.")
    return StoredReport(change_id, job_id, "queued")


async def _find_stored(
    conn: Connection, organisation_id: OrganisationId, report: ChangeReport
) -> StoredReport | None:
    row = await queries.find_report(conn, organisation_id=organisation_id, report=report.digest)
    if row is None or row.rescrape_job_id is None:
        return None
    return StoredReport(
        row.id, JobId(row.rescrape_job_id), row.rescrape_status or "queued", repeated=True
    )
