"""What people ask of many rows: the documents' own statements, and those that their views invite."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

from tests.conformance.documents.statements import BEE, NUQ, RAG
from tests.support.many_rows.fill import Filled
from trapline.db.connection import Connection


class Within(Enum):
    """How long an organisation waits for an answer, in milliseconds: what docs/views.md promises."""

    SCREEN = 100
    REPORT = 1000
    COUNT = 30_000


@dataclass(frozen=True, slots=True)
class Question:
    """A statement, and the promise it falls under. One that counts all rows must read them all."""

    name: str
    sql: str
    arguments: tuple[Any, ...] = ()
    within: Within = Within.SCREEN


def questions(found: Filled) -> list[Question]:
    """Return the documents' statements, then one for each view that none of them asks."""
    return [*_printed(found), *_invited(found)]


def _printed(found: Filled) -> list[Question]:
    group = NUQ["crawl results by group"].replace("<crawl_uuid>", str(found.crawl))
    listing = BEE["job listing"].replace("SELECT ...", "SELECT *").rstrip(";")
    wanted = str(found.owner), "failed", datetime.now(UTC) - timedelta(hours=24)
    application = "SELECT id FROM knowledge.application WHERE organisation_id = "
    progress = RAG["progress"].replace("$1", f"({application}'{found.owner}')")
    return [
        Question("nuq: recent completed scrapes", NUQ["recent completed scrapes"]),
        Question("nuq: crawl results by group", group),
        Question("nuq: failed jobs, 6 hours", NUQ["failed jobs"], within=Within.REPORT),
        Question(
            "nuq: jobs with sessions, 1 hour", NUQ["jobs with sessions"], within=Within.REPORT
        ),
        Question("nuq: session metrics, 24 hours", NUQ["session metrics"], within=Within.REPORT),
        Question("rag: progress, 24 hours", progress),
        Question("bee: worker efficiency, 1 hour", BEE["worker efficiency"]),
        Question("bee: completion rates, 24 hours", BEE["completion rates"], within=Within.REPORT),
        Question("bee: job listing", f"{listing} LIMIT 50", wanted),
        Question("bee: count of jobs", BEE["count of jobs"], within=Within.COUNT),
        Question("bee: count of tasks", BEE["count of tasks"], within=Within.COUNT),
    ]


def _invited(found: Filled) -> list[Question]:
    crawl, of_crawl = found.crawl, (found.crawl,)
    return [
        Question(
            "nuq: backlog of a group",
            "SELECT count(*) FROM nuq.queue_scrape_backlog WHERE group_id = $1",
            of_crawl,
        ),
        Question("nuq: a group", "SELECT * FROM nuq.group_crawl WHERE id = $1", of_crawl),
        Question(
            "nuq: end of a group",
            "SELECT * FROM nuq.queue_crawl_finished WHERE group_id = $1",
            of_crawl,
        ),
        Question(
            "webhook: a session",
            "SELECT * FROM webhook.crawl_sessions WHERE id = $1",
            of_crawl,
        ),
        Question(
            "webhook: operations, 1 hour",
            "SELECT operation_type, count(*), avg(duration_ms) FROM webhook.operation_metrics"
            " WHERE timestamp > now() - interval '1 hour' GROUP BY 1",
        ),
        Question(
            "webhook: slow requests, 1 hour",
            "SELECT path, max(duration_ms) FROM webhook.request_metrics"
            " WHERE timestamp > now() - interval '1 hour' GROUP BY 1",
        ),
        Question("bee: tasks of a job", "SELECT * FROM bee.tasks WHERE job_id = $1", (str(crawl),)),
        Question("lexicon: a job", "SELECT * FROM lexicon.crawl_job WHERE id = $1", of_crawl),
        Question(
            "rag: files of a day",
            "SELECT * FROM rag.processing_jobs WHERE status = 'failed'"
            " AND created_at > now() - interval '24 hours' LIMIT 100",
        ),
    ]


async def plan_of(conn: Connection, question: Question, how: str = "EXPLAIN") -> str:
    """Return how PostgreSQL would answer, as text."""
    await conn.execute("SET LOCAL search_path = bee, public; SET LOCAL statement_timeout = 0")
    rows = await conn.fetch(f"{how} {question.sql}", *question.arguments)
    return "\n".join(row[0] for row in rows)


# Of what holds rows: an empty partition costs nothing.
_WHOLE: Final = re.compile(
    r"Seq Scan on (task|done|ready|job|(?:operation|request|past_job)_2\d+)\b"
    r"[^\n]*cost=[\d.]+\.\.(?!0\.00 )"
)


def scanned(plan: str) -> set[str]:
    """Return the large tables that a plan reads as a whole."""
    return set(_WHOLE.findall(plan))
