"""Webhooks out: every event arrives, in order, at least once, whatever the receiver does."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from pydantic import SecretStr

from tests.support.queue_jobs import ended, kinds_of, numbers, until, working
from tests.support.settings import change_settings
from tests.support.webhook_receiver import Receiver, hang, receiving
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.deliver import subscriptions
from trapline.deliver.retry_policy import DeliveryRetryPolicy
from trapline.deliver.sql import webhooks as queries
from trapline.deliver.sql.webhooks import LeaseEndpointsRow, ListDeliveriesRow, NextDeliveriesRow
from trapline.deliver.subscriptions import Webhook
from trapline.deliver.webhook_sender import WebhookSender
from trapline.errors import InvalidInput, NotFound
from trapline.fetch.post import Poster
from trapline.model import JobId, OrganisationId
from trapline.pipeline import event_dispatch
from trapline.pipeline.event_dispatch import EventDispatcher
from trapline.queue import jobs
from trapline.queue.finish import NewEvent, TaskResult
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.notify import Listener
from trapline.queue.tasks import Task

HASTY = DeliveryRetryPolicy(
    first=timedelta(milliseconds=10),
    longest=timedelta(milliseconds=40),
    blocking_time=timedelta(seconds=60),
    aside_every=timedelta(milliseconds=200),
)


async def render(_: Connection, endpoint: LeaseEndpointsRow, delivery: NextDeliveriesRow) -> bytes:
    body = {
        "type": delivery.name,
        "webhookId": str(delivery.id),
        "number": delivery.number,
        "metadata": endpoint.metadata,
        "data": delivery.data,
    }
    return json.dumps(body).encode()


@asynccontextmanager
async def webhook_sender(
    database: Database,
    retry_policy: DeliveryRetryPolicy = HASTY,
    *,
    seconds: float = 10.0,
    **settings: object,
) -> AsyncIterator[WebhookSender]:
    """Plan and deliver while the block runs."""
    changed = change_settings(database.settings, {"allow_local_webhooks": True} | settings)
    database = replace(database, settings=changed)
    listener = Listener(database)
    async with Poster(changed.fetch, changed.webhooks, seconds=seconds) as poster:
        dispatcher = EventDispatcher(database, poster, render, listener)
        dispatcher.webhook_sender.retry_policy = retry_policy
        running = [asyncio.create_task(dispatcher.run()), asyncio.create_task(listener.run())]
        try:
            yield dispatcher.webhook_sender
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


def pages() -> Kinds:
    async def handle(task: Task) -> TaskResult:
        return TaskResult(events=[NewEvent("page", {"n": task.payload.n})])

    return kinds_of(handle)


async def job_with(
    database: Database,
    organisation_id: OrganisationId,
    url: str,
    *,
    count: int = 20,
    **options: object,
) -> JobId:
    job = NewJob("crawl", organisation_id)
    async with database.tenant_tx(organisation_id) as conn:
        await subscriptions.subscribe(
            conn, organisation_id, job.id, "crawl", Webhook(url, **options)
        )
        await jobs.submit(conn, pages(), job, numbers(count), now=datetime.now(UTC))
    return job.id


async def run(database: Database, *job_ids: JobId) -> None:
    async with working(database, pages()):
        for job_id in job_ids:
            await ended(database, job_id)


def assert_complete(receiver: Receiver, pages_expected: int = 20) -> None:
    """Started, every page, completed: in order, and what came twice came with the same id."""
    bodies = [received.body for received in receiver.got]
    ids: dict[int, str] = {}
    for body in bodies:
        assert ids.setdefault(body["number"], body["webhookId"]) == body["webhookId"]
    assert len(set(ids.values())) == len(ids)
    first_seen = list(dict.fromkeys(body["number"] for body in bodies))
    assert first_seen == list(range(1, pages_expected + 3))
    names = {body["number"]: body["type"] for body in bodies}
    assert list(names.values()) == [
        "crawl.started",
        *["crawl.page"] * pages_expected,
        "crawl.completed",
    ]


async def test_news_at_the_last_moment_keeps_nothing_alive(database: Database) -> None:
    async with Poster(database.settings.fetch, database.settings.webhooks) as poster:
        dispatcher = EventDispatcher(database, poster, render, Listener(database))
        planning = asyncio.create_task(dispatcher._plan_forever())
        async with asyncio.timeout(100):
            while not dispatcher._wake._waiters:  # type: ignore[attr-defined]  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        dispatcher._wake.set()
        planning.cancel()
        done, _ = await asyncio.wait([planning], timeout=10)
    assert done, "the end was taken for news"


async def test_every_event_arrives_in_order(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with receiving() as receiver, webhook_sender(database):
        job_id = await job_with(database, organisation_id, receiver.url)
        await run(database, job_id)
        await until(lambda: len(receiver.got) == 22)
    assert_complete(receiver)


async def test_a_receiver_that_answers_500_half_the_time_gets_all(
    database: Database, organisation_id: OrganisationId
) -> None:
    async def half(count: int, _: object) -> int:
        return 500 if count % 2 else 200

    async with receiving(Receiver(answer=half)) as receiver, webhook_sender(database):
        await run(database, await job_with(database, organisation_id, receiver.url))
        await until(lambda: len(receiver.got) == 22)
    assert_complete(receiver)
    assert receiver.requests == 44


async def test_a_receiver_that_hangs_is_tried_again(
    database: Database, organisation_id: OrganisationId
) -> None:
    async def at_first(count: int, _: object) -> int:
        return await hang() if count <= 2 else 200

    async with (
        receiving(Receiver(answer=at_first)) as receiver,
        webhook_sender(database, seconds=1),
    ):
        await run(database, await job_with(database, organisation_id, receiver.url, count=3))
        await until(lambda: "crawl.completed" in receiver.names)
    assert_complete(receiver, 3)


async def test_a_receiver_that_was_away_for_a_while_gets_all(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with receiving() as receiver:
        pass
    async with webhook_sender(database):
        await run(database, await job_with(database, organisation_id, receiver.url))
        await asyncio.sleep(0.5)
        async with receiving(receiver):
            await until(lambda: len(receiver.got) == 22)
    assert_complete(receiver)


async def test_a_slow_receiver_delays_no_other(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with (
        receiving(Receiver(answer=hang)) as slow,
        receiving() as quick,
        webhook_sender(database, seconds=60),
    ):
        hanging = [await job_with(database, organisation_id, slow.url, count=1) for _ in range(40)]
        job_id = await job_with(database, organisation_id, quick.url)
        await run(database, *hanging, job_id)
        await until(lambda: len(quick.got) == 22, 50)
        # Only a few at once, however many jobs tell it.
        assert 0 < slow.requests <= 8
    assert_complete(quick)


async def test_what_fails_for_its_whole_turn_is_set_aside_and_comes_later(
    database: Database, organisation_id: OrganisationId
) -> None:
    retry_policy = replace(HASTY, blocking_time=timedelta(milliseconds=100))
    mended = asyncio.Event()

    async def refuse_second(_: int, body: dict[str, Any]) -> int:
        return 500 if body["number"] == 2 and not mended.is_set() else 200

    receiver = Receiver(answer=refuse_second)
    async with receiving(receiver), webhook_sender(database, retry_policy):
        await run(database, await job_with(database, organisation_id, receiver.url, count=3))
        await until(lambda: "crawl.completed" in receiver.names)
        assert [r.body["number"] for r in receiver.got] == [1, 3, 4, 5]
        mended.set()
        await until(lambda: len(receiver.got) == 5)
    assert receiver.got[-1].body["number"] == 2


async def test_what_failed_for_a_day_is_a_dead_letter_and_can_be_replayed(
    database: Database, organisation_id: OrganisationId
) -> None:
    async def never(*_: object) -> int:
        return 503

    retry_policy = replace(HASTY, give_up=timedelta(milliseconds=100))
    receiver = Receiver(answer=never)
    async with receiving(receiver), webhook_sender(database, retry_policy):
        job_id = await job_with(database, organisation_id, receiver.url, count=1)
        await run(database, job_id)
        rows = await _all(database, organisation_id, lambda states: states == {"dead"})
        assert [row.error for row in rows] == ["The receiver answered 503."] * 3
        ids = {str(row.id) for row in rows}
        receiver.answer = None
        async with database.tenant_tx(organisation_id) as conn:
            assert await subscriptions.replay(conn, organisation_id, job_id=job_id) == 3
        await until(lambda: len(receiver.got) == 3)
    assert {r.body["webhookId"] for r in receiver.got} == ids


async def test_a_cancelled_job_is_told_of_once(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with receiving() as receiver, webhook_sender(database):
        job_id = await job_with(database, organisation_id, receiver.url, count=500)
        async with database.tenant_tx(organisation_id) as conn:
            await jobs.cancel(conn, job_id)
        async with working(database, pages()):
            await until(lambda: bool(receiver.got))
            await asyncio.sleep(0.5)
    assert receiver.names == ["crawl.cancelled"]


async def test_a_private_receiver_is_refused_unless_opened(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with receiving() as receiver, webhook_sender(database, allow_local_webhooks=False):
        await run(database, await job_with(database, organisation_id, receiver.url, count=1))
        rows = await _all(database, organisation_id, lambda states: states == {"dead"})
    assert receiver.requests == 0
    assert "TRAPLINE_ALLOW_LOCAL_WEBHOOKS" in (rows[0].error or "")


async def test_the_signature_covers_the_body_and_headers_and_metadata_are_sent(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with (
        receiving() as receiver,
        webhook_sender(database, webhook_secret=SecretStr("s3cret")),
    ):
        await run(
            database,
            await job_with(
                database,
                organisation_id,
                receiver.url,
                count=1,
                headers={"X-Mine": "yes", "Content-Length": "1"},
                metadata={"order": "7"},
            ),
        )
        await until(lambda: len(receiver.got) == 3)
    for received in receiver.got:
        expected = hmac.new(b"s3cret", received.raw, hashlib.sha256).hexdigest()
        assert received.headers["X-Firecrawl-Signature"] == f"sha256={expected}"
        assert received.headers["X-Mine"] == "yes"
        assert received.headers["Content-Type"] == "application/json"
        assert received.body["metadata"] == {"order": "7"}


async def test_only_wanted_events_are_sent(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with receiving() as receiver, webhook_sender(database):
        await run(
            database,
            await job_with(database, organisation_id, receiver.url, events=["completed"]),
        )
        await until(lambda: bool(receiver.got))
        await asyncio.sleep(0.2)
    assert receiver.names == ["crawl.completed"]


async def test_another_process_takes_over_what_was_leased(
    database: Database, organisation_id: OrganisationId
) -> None:
    """A process that died holds its receivers until the lease runs out, and sends no more."""
    async with receiving(Receiver(answer=hang)) as receiver:
        job_id = await job_with(database, organisation_id, receiver.url, count=3)
        await run(database, job_id)
        async with webhook_sender(database):
            await until(lambda: receiver.requests == 1)
        async with database.system_tx() as conn:
            await conn.execute("UPDATE deliver.endpoint SET leased_until = now()")
        receiver.answer = None
        async with webhook_sender(database):
            await until(lambda: len(receiver.got) == 5)
    assert_complete(receiver, 3)


async def test_replay_says_what_it_cannot_do(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with database.tenant_tx(organisation_id) as conn:
        with pytest.raises(InvalidInput):
            await subscriptions.replay(conn, organisation_id)
        with pytest.raises(NotFound):
            await subscriptions.replay(conn, organisation_id, delivery_id=UUID(int=1))


async def test_old_deliveries_are_dropped(
    database: Database, organisation_id: OrganisationId
) -> None:
    async with receiving() as receiver, webhook_sender(database):
        await run(database, await job_with(database, organisation_id, receiver.url, count=1))
        await _all(database, organisation_id, lambda states: states == {"delivered"})
    (duty,) = event_dispatch.duties()
    assert await duty.work(database) == 0
    async with database.system_tx() as conn:
        await conn.execute("UPDATE deliver.delivery SET created_at = now() - interval '100 days'")
        await conn.execute("UPDATE deliver.endpoint SET created_at = now() - interval '100 days'")
    assert await duty.work(database) == 4


async def _all(
    database: Database, organisation_id: OrganisationId, fits: Callable[[set[str]], bool]
) -> list[ListDeliveriesRow]:
    """Wait until the states of all deliveries fit."""
    async with asyncio.timeout(100):
        while True:
            async with database.tenant_tx(organisation_id) as conn:
                rows = await subscriptions.list_deliveries(conn, organisation_id)
            told = {row.name for row in rows}
            if "crawl.completed" in told and fits({row.state for row in rows}):
                return rows
            await asyncio.sleep(0.02)


async def test_who_plans_holds_receivers_that_are_due_already(
    database: Database, organisation_id: OrganisationId
) -> None:
    """Else one given back meanwhile would not see what was planned, and never be due again."""
    await job_with(database, organisation_id, "http://127.0.0.1:9/", count=1)
    async with database.system_tx() as conn:
        endpoint = await conn.fetchval("UPDATE deliver.endpoint SET due_at = now() RETURNING id")
    async with database.system_tx() as planning, database.system_tx() as giving_back:
        await queries.wake_endpoints(planning, ids=[endpoint])
        await giving_back.execute("SET LOCAL lock_timeout = '100ms'")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await queries.release_endpoint(giving_back, id=endpoint)
