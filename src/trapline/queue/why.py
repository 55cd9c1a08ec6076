"""What a task waits for, in one sentence."""

from datetime import datetime
from typing import Final

from trapline.db.connection import Connection
from trapline.errors import NotFound
from trapline.model import JobId, TaskId
from trapline.queue import jobs
from trapline.queue.quotas import tomorrow
from trapline.queue.retries import Verdict
from trapline.queue.sql import agents
from trapline.queue.sql import jobs as job_queries
from trapline.queue.sql import why as queries
from trapline.queue.sql.why import PlaceRow

_LONG_WAIT: Final = 2.0
_FELT: Final = 0.01


async def why(conn: Connection, task_id: TaskId, *, now: datetime) -> str:
    """Say what a task waits for, or how it ended."""
    place = await queries.place(conn, task_id=task_id)
    if place is None:
        raise NotFound(f"There is no task {task_id}.")
    alive = await agents.any_agent(conn, kind=place.kind)
    return explain(place, now=now, alive=alive)


async def why_job(conn: Connection, job_id: JobId, *, now: datetime) -> str:
    """Say what a job's next task waits for, or how the job ended."""
    job = await jobs.get(conn, job_id)
    if job.status in jobs.ENDED:
        return f"It ended: {job.status}."
    task_id = await job_queries.next_task(conn, job_id=job_id)
    if task_id is None:
        return "It has no task to run just now."
    return f"Task {task_id}: {await why(conn, task_id, now=now)}"


async def pace_of(conn: Connection, job_id: JobId, *, now: datetime) -> str:
    """Say in a few words how fast a job may go, and what it waits for if that is long."""
    gate = await queries.slowest_gate(conn, job_id=job_id)
    if gate is None:
        return ""
    wait = (gate.ready_at - now).total_seconds()
    if wait > _LONG_WAIT:
        return f"{gate.name.removeprefix('host:')} is left alone for {wait:.0f} s"
    gap = gate.gap.total_seconds()
    return f"{gate.in_flight} at once" + (f", {gap:.2g} s apart" if gap >= _FELT else "")


def explain(place: PlaceRow, *, now: datetime, alive: bool) -> str:  # noqa: PLR0911 (one per reason)
    """Return the first thing that holds the task back."""
    if place.done_status is not None:
        ended = Verdict(place.done_status).name.lower()
        return f"It ended: {ended}." if place.error is None else f"It ended: {ended}. {place.error}"
    if place.lease_id is not None:
        return f"It runs now, on agent {place.agent_id}, leased until {place.expires_at}."
    if place.job_status in {"completed", "failed", "cancelled"}:
        return f"It will not run: its job is {place.job_status}."
    if place.overflow is not None:
        return f"It is beyond its job's limit of {place.task_limit}, until another one is skipped."
    if place.job_status == "paused":
        return "Its job is paused."
    if place.run_at is not None and place.run_at > now:
        what = "It is retried" if place.retry_of_attempt else "It runs"
        return f"{what} at {place.run_at}."
    if not alive:
        return f"No agent is alive that runs {place.kind}."
    return _limits(place, now)


def _limits(place: PlaceRow, now: datetime) -> str:
    if place.max_active is not None and place.active >= place.max_active:
        return f"Its job is at its limit of {place.max_active} tasks at once."
    if place.max_concurrency is not None and place.organisation_active >= place.max_concurrency:
        return f"Its organisation is at its limit of {place.max_concurrency} tasks at once."
    most = place.max_pages_per_day
    if most is not None and place.counted and place.pages_today >= most:
        return f"Its organisation has visited its {most} pages of today, until {tomorrow(now)}."
    if place.bound is not None and (place.in_flight or 0) >= place.bound:
        return f"The gate {place.gate} is full: {place.in_flight} of {place.bound} in flight."
    if place.ready_at is not None and place.ready_at > now:
        return f"The gate {place.gate} keeps its gap until {place.ready_at}."
    return "It waits for its turn."
