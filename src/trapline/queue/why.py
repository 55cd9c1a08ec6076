"""Why a task does not run yet, in one sentence."""

from datetime import datetime
from typing import Final

from trapline.db.connection import Connection
from trapline.errors import NotFound
from trapline.model import JobId, TaskId
from trapline.queue import jobs
from trapline.queue.daily_quota import tomorrow
from trapline.queue.retry_policy import TaskOutcome
from trapline.queue.sql import agents
from trapline.queue.sql import jobs as job_queries
from trapline.queue.sql import why as queries
from trapline.queue.sql.why import TaskWaitRow

_LONG_WAIT: Final = 2.0
_NOTICEABLE_GAP: Final = 0.01


async def why(conn: Connection, task_id: TaskId, *, now: datetime) -> str:
    """Say what a task waits for, or how it ended."""
    task = await queries.task_wait(conn, task_id=task_id)
    if task is None:
        raise NotFound(f"There is no task {task_id}.")
    alive = await agents.any_agent(conn, kind=task.kind)
    return explain(task, now=now, alive=alive)


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
    return f"{gate.in_flight} at once" + (f", {gap:.2g} s apart" if gap >= _NOTICEABLE_GAP else "")


def explain(task: TaskWaitRow, *, now: datetime, alive: bool) -> str:  # noqa: PLR0911 (one per reason)
    """Return the first reason why the task does not run."""
    if task.done_status is not None:
        ended = TaskOutcome(task.done_status).name.lower()
        return f"It ended: {ended}." if task.error is None else f"It ended: {ended}. {task.error}"
    if task.lease_id is not None:
        return f"It runs now, on agent {task.agent_id}, leased until {task.expires_at}."
    if task.job_status in jobs.ENDED:
        return f"It will not run: its job is {task.job_status}."
    if task.overflow is not None:
        return f"It is beyond its job's limit of {task.task_limit}, until another one is skipped."
    if task.job_status == "paused":
        return "Its job is paused."
    if task.run_at is not None and task.run_at > now:
        what = "It is retried" if task.retry_of_attempt else "It runs"
        return f"{what} at {task.run_at}."
    if not alive:
        return f"No agent is alive that runs {task.kind}."
    return _limits(task, now)


def _limits(task: TaskWaitRow, now: datetime) -> str:
    if task.max_active is not None and task.active >= task.max_active:
        return f"Its job is at its limit of {task.max_active} tasks at once."
    if task.max_concurrency is not None and task.organisation_active >= task.max_concurrency:
        return f"Its organisation is at its limit of {task.max_concurrency} tasks at once."
    most = task.max_pages_per_day
    if most is not None and task.counted and task.pages_today >= most:
        return f"Its organisation has visited its {most} pages of today, until {tomorrow(now)}."
    if task.bound is not None and (task.in_flight or 0) >= task.bound:
        return f"The gate {task.gate} is full: {task.in_flight} of {task.bound} in flight."
    if task.ready_at is not None and task.ready_at > now:
        return f"The gate {task.gate} keeps its gap until {task.ready_at}."
    return "It waits for its turn."
