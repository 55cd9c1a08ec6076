"""The worker: handlers do what handlers do, and each task ends once, in a defined state."""

from tests.queueing import Number, assert_sound, ended, kinds_of, numbers, submit, working
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.queue.tasks import Task


async def test_a_job_runs_to_its_end(database: Database, organisation_id: OrganisationId) -> None:
    seen: list[int] = []

    async def handle(task: Task) -> Number:
        seen.append(task.payload.n)
        return Number(task.payload.n * 2)

    kinds = kinds_of(handle)
    job_id, added = await submit(database, kinds, organisation_id, numbers(500))
    assert len(added) == 500
    async with working(database, kinds):
        job = await ended(database, job_id)
    assert (job.status, job.total, job.completed, job.remaining) == ("completed", 500, 500, 0)
    assert sorted(seen) == list(range(500))
    await assert_sound(database)
