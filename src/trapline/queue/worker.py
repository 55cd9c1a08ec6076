"""The worker: claims tasks, runs their handlers, finishes them.

    lanes.pick ── Claimer.turn ──► Hands ──► runners ──► attempts ──► the next turn
                                                              └─ with results to store ──► Finisher

Runners are as many as the concurrency; each takes one task after the other, so a task costs no
asyncio.Task of its own. While handlers are fast, more tasks are claimed ahead, so that a turn moves
hundreds; while they are slow, no more than can run.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import asyncpg

from trapline.db.connection import LOST
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable, ExitCode, TraplineError
from trapline.logs import get_logger
from trapline.model import JobId
from trapline.queue import metrics
from trapline.queue.agents import Agent
from trapline.queue.claiming import Claimer
from trapline.queue.finishing import AGAIN, Attempt, Finished, Finisher, Store, written
from trapline.queue.jobs import ENDED
from trapline.queue.kinds import Kinds
from trapline.queue.lanes import Lanes, Want
from trapline.queue.leases import RENEWALS_PER_LEASE, Leases
from trapline.queue.notices import Bell, Ears
from trapline.queue.retries import Verdict, judge
from trapline.queue.running import Abort, Hands, Running
from trapline.queue.sql import claiming as queries
from trapline.queue.statistics import Statistics
from trapline.queue.tasks import Task

log = get_logger(__name__)

TICK: Final = 1.0
WATCH: Final = 0.25
LANES_PER_ORGANISATION: Final = 10_000
PROMOTED_AT_ONCE: Final = 5_000
DEAR_LOOK: Final = 0.02
# Claimed ahead: what is done in this time, at most so many.
AHEAD_SECONDS: Final = 0.05
MOST_AHEAD: Final = 1_000
MOST_STORED: Final = 200
# A runner lets others run after so many tasks that did not wait for anything.
TASKS_PER_BREATH: Final = 64
# How long a handler may go on after it was cancelled, before its runner is given up.
PATIENCE: Final = 5.0
UNKNOWN_KIND_PAUSE: Final = timedelta(seconds=5)
_PAUSE: Final = 0.2


class TimedOut(TraplineError):
    """The task took longer than its timeout."""


@dataclass(slots=True)
class Worker:
    """One agent's work. `run` ends when `stop` was called and everything is handed back."""

    database: Database
    kinds: Kinds
    concurrency: int = 100
    name: str = "worker"
    user_agent: str | None = None
    store: Store | None = None
    grace: float = 10.0
    # None: as the settings say.
    lease_time: timedelta | None = None
    bell: Bell = field(init=False)
    agent: Agent = field(init=False)
    ears: Ears = field(init=False)
    _lease_time: timedelta = field(init=False)
    _lanes: Lanes = field(default_factory=Lanes)
    _hands: Hands = field(default_factory=Hands)
    _leases: Leases = field(default_factory=Leases)
    _claimer: Claimer = field(init=False)
    _finisher: Finisher = field(init=False)
    _statistics: Statistics = field(init=False)
    _plain: list[Attempt] = field(default_factory=list)
    _rich: list[Attempt] = field(default_factory=list)
    _settling: int = 0
    _ahead: int = 0
    _rate: float = 0.0
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _rich_news: asyncio.Event = field(default_factory=asyncio.Event)
    _refresh: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _runners: set[asyncio.Task[None]] = field(default_factory=set)
    _rng: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self.bell = Bell(self.database)
        self.agent = Agent(
            self.database, self.name, self.concurrency, sorted(self.kinds), self.user_agent
        )
        self.ears = Ears(self.database)
        self.ears.on_ready(self._refresh.set)
        self.bell.on_ready_here(self._refresh.set)
        self.ears.on_jobs(lambda _: self._refresh.set())
        settings = self.database.settings
        self._lease_time = self.lease_time or timedelta(seconds=settings.lease_seconds)
        self._claimer = Claimer(
            self.database, self.kinds, self._lanes, self._lease_time, settings.most_stalls
        )
        self._finisher = Finisher(self.database, self.kinds, self.store, settings.most_stalls)
        self._statistics = Statistics(self.database)

    def stop(self) -> None:
        """Claim nothing more; finish or hand back what is in hand."""
        self._stopping.set()
        self._news.set()

    def freed(self, gate_ids: Sequence[int]) -> None:
        """Look again at lanes that wait for these gates: they have room."""
        self._lanes.free((), gate_ids, time.monotonic())
        self._news.set()

    async def run(self) -> None:
        """Work until stopped."""
        await self.agent.register()
        duties = [
            asyncio.create_task(self._for_ever(name, work), name=name)
            for name, work in (
                ("ticks", self._ticks),
                ("renewal", self._renewals),
                ("watch", self._watch),
                ("storing", self._storing),
            )
        ]
        duties += [
            asyncio.create_task(self.ears.run(), name="ears"),
            asyncio.create_task(self.agent.keep_alive(), name="agent"),
        ]
        for _ in range(self.concurrency):
            self._hire()
        try:
            await self._turns()
        finally:
            for task in (*duties, *self._runners):
                task.cancel()
            await asyncio.gather(*duties, *self._runners, return_exceptions=True)
            await self._statistics.flush()
            await self.bell.aclose()
            await self.agent.finish()

    async def _for_ever(self, name: str, work: Any) -> None:
        """Keep a duty going: a server that is away, or a bug in one pass, does not end it."""
        while True:
            try:
                await work()
            except (*LOST, DatabaseUnavailable, *AGAIN) as error:
                log.warning("a duty of the worker waits", duty=name, error=str(error))
            except asyncpg.PostgresError as error:
                log.exception("a duty of the worker failed", duty=name, sqlstate=error.sqlstate)
            await asyncio.sleep(_PAUSE)

    # Turns

    async def _turns(self) -> None:
        """Finish and claim, until there is nothing left to finish."""
        drain: asyncio.Task[None] | None = None
        while True:
            if self._stopping.is_set() and drain is None:
                drain = asyncio.create_task(self._drain(), name="drain")
            if drain is not None and drain.done() and not self._unfinished():
                await drain
                return
            attempts, self._plain = self._plain, []
            wants = [] if drain is not None else self._lanes.pick(self._room(), time.monotonic())
            if attempts or wants:
                await self._turn(attempts, wants)
            else:
                await self._pause()

    def _unfinished(self) -> int:
        return len(self._hands) + len(self._plain) + len(self._rich) + self._settling

    def _room(self) -> int:
        return self.concurrency + self._ahead - self._unfinished()

    async def _pause(self) -> None:
        """Wait for an attempt to end, for a notice, or for a gate to open."""
        next_at = self._lanes.next_at() if not self._stopping.is_set() else None
        timeout = TICK if next_at is None else min(TICK, next_at - time.monotonic())
        if self._room() <= 0:
            timeout = TICK
        self._news.clear()
        if self._plain:
            return
        try:
            async with asyncio.timeout(max(timeout, 0.001)):
                await self._news.wait()
        except TimeoutError:
            return

    async def _turn(self, attempts: Sequence[Attempt], wants: Sequence[Want]) -> None:
        self._settling += len(attempts)
        began = time.perf_counter()
        try:
            with metrics.Stopwatch(metrics.CLAIM):
                claim = await self._claimer.turn(self.agent.id, attempts, wants)
        except (*LOST, DatabaseUnavailable, *AGAIN, asyncpg.PostgresError) as error:
            log.warning("a turn is taken again", error=str(error))
            self._lanes.give_back(wants, time.monotonic())
            await asyncio.sleep(_PAUSE if isinstance(error, LOST) else 0)
            await self._settle(attempts)
            return
        except BaseException:
            self._settling -= len(attempts)
            raise
        self._settled(attempts, claim.news)
        self._pace(len(attempts), time.perf_counter() - began)
        for task in (*claim.tasks, *claim.strange):
            self._leases.hold(task.lease_id)
        self._hands.put(claim.tasks)
        for task in claim.strange:
            self._refuse(task)
        if claim.tasks:
            # Fast handlers are done before the next turn, which then has something to finish.
            await asyncio.sleep(0)
        metrics.IN_HAND.set(len(self._hands))

    def _pace(self, finished: int, seconds: float) -> None:
        """Claim ahead by how fast tasks are done."""
        rate = finished / max(seconds, 1e-4)
        self._rate = 0.7 * self._rate + 0.3 * rate
        self._ahead = min(MOST_AHEAD, round(self._rate * AHEAD_SECONDS))

    async def _settle(self, attempts: Sequence[Attempt]) -> None:
        """Finish attempts that were already counted as settling."""
        if not attempts:
            return
        with metrics.Stopwatch(metrics.FINISH):
            news = await self._finisher.finish(attempts)
        self._settled(attempts, news)

    def _settled(self, attempts: Sequence[Attempt], news: Sequence[JobId]) -> None:
        self._settling -= len(attempts)
        for attempt in attempts:
            self._leases.let_go(attempt.task.lease_id)
        if attempts:
            self._lanes.free(
                (attempt.task.job_id for attempt in attempts),
                (attempt.task.gate_id for attempt in attempts),
                time.monotonic(),
            )
        more = any(attempt.children for attempt in attempts)
        self.bell.ring(ready=more, jobs=news)
        if more:
            self._refresh.set()

    async def _storing(self) -> None:
        """Finish attempts whose results must be stored, in batches, beside the turns."""
        while True:
            await self._rich_news.wait()
            self._rich_news.clear()
            while self._rich:
                batch, self._rich = self._rich[:MOST_STORED], self._rich[MOST_STORED:]
                self._settling += len(batch)
                await self._settle(batch)
                self._news.set()

    # Running

    def _hire(self) -> None:
        runner = asyncio.create_task(self._runner(), name="runner")
        self._runners.add(runner)
        runner.add_done_callback(self._runners.discard)

    async def _runner(self) -> None:
        """Run one task after the other."""
        runner = asyncio.current_task()
        assert runner is not None  # noqa: S101 (this is a coroutine of a task)
        streak = 0
        while True:
            task = await self._hands.take()
            await self._run_one(Running(task, runner, time.monotonic()))
            streak += 1
            if streak % TASKS_PER_BREATH == 0:
                await asyncio.sleep(0)

    async def _run_one(self, running: Running) -> None:
        """Run a task's handler and hand on what it came to, whatever it does."""
        task = running.task
        self._hands.running[task.id] = running
        attempt: Attempt | None
        try:
            attempt = await self._attempt(task)
        except asyncio.CancelledError:
            attempt = self._aborted(running)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the worker's boundary)
            attempt = self._failed(task, error)
        if self._hands.running.pop(task.id, None) is running:
            self._ended(running, attempt)
        else:
            # Given up long ago, and replaced: this runner has no place any more.
            raise asyncio.CancelledError

    async def _attempt(self, task: Task) -> Attempt:
        if task.deadline is not None and task.deadline <= datetime.now(UTC):
            return Attempt(
                task,
                Verdict.FAILED,
                ExitCode.DEADLINE_PASSED,
                "The task's own time was up before it began.",
            )
        handler = self.kinds[task.kind].handler
        assert handler is not None  # noqa: S101 (the claimer refuses kinds without one)
        value = await handler(task)
        # What is stored need not be JSON: the store hook says what its result is.
        stored = self.store is not None and self.kinds[task.kind].stored
        if isinstance(value, Finished) and value.error is not None:
            attempt = self._failed(task, value.error)
            attempt.value, attempt.gate = value.result, value.gate
            attempt.events = list(value.events)
            return attempt
        if isinstance(value, Finished):
            return Attempt(
                task,
                value=value.result,
                result=None if stored else written(value.result),
                children=list(value.children),
                events=list(value.events),
                gate=value.gate,
            )
        return Attempt(task, value=value, result=None if stored else written(value))

    def _failed(self, task: Task, error: BaseException) -> Attempt:
        judgement = judge(
            error,
            attempt=task.attempt,
            max_attempts=task.max_attempts,
            policy=self.kinds[task.kind].retry,
            now=datetime.now(UTC),
            rng=self._rng,
        )
        log.info(
            "task failed",
            task=task.id,
            kind=task.kind,
            attempt=task.attempt,
            verdict=judgement.verdict.name,
            error=judgement.error,
        )
        reason = judgement.error.replace("\x00", "")
        return Attempt(task, judgement.verdict, judgement.code, reason, judgement.run_at)

    def _aborted(self, running: Running) -> Attempt | None:
        """Decide by who cancelled the handler: we, it, or the end of the whole worker."""
        if running.abort is not None:
            running.runner.uncancel()
            return self._stopped(running)
        if running.runner.cancelling():
            raise asyncio.CancelledError
        return self._failed(running.task, TraplineError("The handler cancelled itself."))

    def _stopped(self, running: Running) -> Attempt | None:
        """Return what an aborted task came to; nothing when it is no longer ours."""
        task = running.task
        match running.abort:
            case Abort.LEASE_LOST:
                return None
            case Abort.JOB_ENDED:
                return Attempt(task, Verdict.CANCELLED, ExitCode.CANCELLED)
            case Abort.SHUTTING_DOWN:
                return Attempt(task, Verdict.RELEASED)
            case Abort.TIMED_OUT | None:
                return self._failed(task, TimedOut(f"It took longer than {task.timeout}."))

    def _ended(self, running: Running, attempt: Attempt | None) -> None:
        task = running.task
        seconds = time.monotonic() - running.started
        if attempt is None:
            self._leases.let_go(task.lease_id)
            self._news.set()
            return
        self._statistics.count(task.kind, attempt.verdict, seconds)
        stored = (
            (attempt.verdict is Verdict.COMPLETED or attempt.value is not None)
            and self.store is not None
            and self.kinds[task.kind].stored
        )
        if stored or attempt.rich:
            self._rich.append(attempt)
            self._rich_news.set()
        else:
            self._plain.append(attempt)
            self._news.set()

    def _refuse(self, task: Task) -> None:
        """Hand back a task of a kind that is not known here; fail one whose payload is not its kind's."""
        if isinstance(task.payload, Exception):
            reason = f"The payload does not fit the kind any more: {task.payload}"
            self._plain.append(Attempt(task, Verdict.FAILED, ExitCode.UNEXPECTED, reason))
        else:
            later = datetime.now(UTC) + UNKNOWN_KIND_PAUSE
            self._plain.append(Attempt(task, Verdict.RELEASED, run_at=later))
        self._news.set()

    # Looking after it

    async def _ticks(self) -> None:
        """Once a second, and when a notice comes: see which lanes there are and what is due."""
        while True:
            self._refresh.clear()
            now = time.monotonic()
            async with self.database.system_tx() as conn:
                rows = await queries.served_lanes(
                    conn, most_per_organisation=LANES_PER_ORGANISATION
                )
                jobs = list(self._hands.jobs())
                states = await queries.states_of_jobs(conn, jobs=jobs) if jobs else []
            self._lanes.refresh(rows, now)
            self._lanes.wake(now)
            self._news.set()
            next_at = await self._promote()
            self._heed({row.id: row.status for row in states})
            await self._statistics.flush_sometimes()
            await self._rest(now, next_at)

    async def _promote(self) -> datetime | None:
        """Let tasks run whose time has come; return when the next one's does."""
        async with self.database.system_tx() as conn:
            due = await queries.promote(conn, most=PROMOTED_AT_ONCE)
        if due is not None and due.promoted:
            self._refresh.set()
        return due.next_at if due else None

    async def _rest(self, began: float, next_at: datetime | None) -> None:
        """Sleep until the next tick is worth it; many lanes are looked at less often."""
        took = time.monotonic() - began
        pause = max(TICK, 20 * took)
        if next_at is not None:
            pause = min(pause, max(0.01, (next_at - datetime.now(UTC)).total_seconds()))
        try:
            async with asyncio.timeout(pause):
                # After a dear look, a burst of notices is gathered into one reason for the next.
                await asyncio.sleep(min(took, TICK) if took > DEAR_LOOK else 0)
                await self._refresh.wait()
        except TimeoutError:
            return

    def _heed(self, states: dict[JobId, str]) -> None:
        """Stop tasks of jobs that have ended, hand back those of paused ones that do not run yet."""
        if not states:
            return
        now = time.monotonic()
        for task in self._hands.withdraw(lambda task: task.job_id in states):
            ended = states[task.job_id] in ENDED
            verdict = Verdict.CANCELLED if ended else Verdict.RELEASED
            self._plain.append(Attempt(task, verdict, ExitCode.CANCELLED if ended else None))
        for running in list(self._hands.running.values()):
            if states.get(running.task.job_id) in ENDED:
                running.stop(Abort.JOB_ENDED, now)
        self._news.set()

    async def _renewals(self) -> None:
        """Renew the leases; stop what is no longer ours."""
        while True:
            await asyncio.sleep(self._lease_time.total_seconds() / RENEWALS_PER_LEASE)
            async with self.database.system_tx() as conn:
                lost = await self._leases.renew(conn, self._lease_time)
            if not lost:
                continue
            log.warning("leases were lost", leases=sorted(lost))
            now = time.monotonic()
            self._leases.forget(lost)
            self._hands.withdraw(lambda task, lost=lost: task.lease_id in lost)  # type: ignore[misc]
            for running in list(self._hands.running.values()):
                if running.task.lease_id in lost:
                    running.stop(Abort.LEASE_LOST, now)
            self._news.set()

    async def _watch(self) -> None:
        """Stop tasks that take too long, and give up runners whose handler will not stop."""
        while True:
            await asyncio.sleep(WATCH)
            now = time.monotonic()
            for running in list(self._hands.running.values()):
                if running.abort is None:
                    if now - running.started > running.task.timeout.total_seconds():
                        running.stop(Abort.TIMED_OUT, now)
                elif now - running.aborted_at > PATIENCE:
                    self._give_up(running)

    def _give_up(self, running: Running) -> None:
        log.error("a handler does not stop", task=running.task.id, kind=running.task.kind)
        del self._hands.running[running.task.id]
        self._runners.discard(running.runner)
        self._hire()
        running.runner.add_done_callback(_swallow)
        self._ended(running, self._stopped(running))

    async def _drain(self) -> None:
        """Hand back what does not run; let the rest finish for a while, then hand that back too."""
        for task in self._hands.withdraw(lambda _: True):
            self._plain.append(Attempt(task, Verdict.RELEASED))
        self._news.set()
        deadline = time.monotonic() + self.grace
        while self._hands.running and time.monotonic() < deadline:  # noqa: ASYNC110 (and watch the clock)
            await asyncio.sleep(0.05)
        now = time.monotonic()
        for running in list(self._hands.running.values()):
            running.stop(Abort.SHUTTING_DOWN, now)
        while self._unfinished():
            self._news.set()
            await asyncio.sleep(0.05)


def _swallow(runner: asyncio.Task[None]) -> None:
    """Take note of a given-up runner's end, whatever it was."""
    if not runner.cancelled():
        runner.exception()
