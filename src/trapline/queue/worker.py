"""The worker: claims tasks, runs their handlers, finishes them.

    Lanes.pick ── Turns ──► Hands ──► Runners ──► Outbox ──► the next turn
                                                     └─ with results to store ──► Finisher

While handlers are fast, more tasks are claimed ahead, so that a turn moves hundreds; while they are
slow, no more than can run.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import asyncpg

from trapline.db.connection import LOST
from trapline.db.pool import Database
from trapline.errors import DatabaseUnavailable
from trapline.logs import get_logger
from trapline.queue import turns
from trapline.queue.agents import Agent
from trapline.queue.claiming import Claimer
from trapline.queue.finishing import AGAIN, Attempt, Finisher, Store
from trapline.queue.kinds import Kinds
from trapline.queue.lanes import Lanes
from trapline.queue.leases import Leases
from trapline.queue.lookout import Lookout
from trapline.queue.notices import Bell, Ears
from trapline.queue.outbox import Outbox
from trapline.queue.retries import Verdict
from trapline.queue.runners import Runners
from trapline.queue.running import Abort, Hands
from trapline.queue.statistics import Statistics
from trapline.queue.turns import Turns

log = get_logger(__name__)

_PAUSE: Final = 0.2
# How often a worker that stops looks whether a turn that was under way has come back.
_GLANCE: Final = 0.005


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
    _hands: Hands = field(default_factory=Hands)
    _outbox: Outbox = field(default_factory=Outbox)
    _statistics: Statistics = field(init=False)
    _runners: Runners = field(init=False)
    _lookout: Lookout = field(init=False)
    _turns: Turns = field(init=False)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        database, settings = self.database, self.database.settings
        self.bell = Bell(database)
        self.agent = Agent(
            database, self.name, self.concurrency, sorted(self.kinds), self.user_agent
        )
        lease_time = self.lease_time or timedelta(seconds=settings.lease_seconds)
        lanes, leases = Lanes(), Leases()
        self._statistics = Statistics(database)
        self._runners = Runners(
            self.kinds, self._hands, leases, self._outbox, self._statistics, self.store is not None
        )
        self._lookout = Lookout(
            database, lanes, self._hands, leases, self._outbox, self._statistics, lease_time
        )
        self._turns = Turns(
            self.agent,
            Claimer(database, self.kinds, lanes, lease_time, settings.most_stalls),
            Finisher(database, self.kinds, self.store, settings.most_stalls),
            lanes,
            self._hands,
            leases,
            self._outbox,
            self.bell,
            self._lookout.refresh,
            self.concurrency,
        )
        self.ears = Ears(database)
        self.ears.on_ready(self._lookout.refresh.set)
        self.ears.on_jobs(self._lookout.hear)
        self.bell.on_ready_here(self._lookout.refresh.set)

    @property
    def in_hand(self) -> int:
        """How many tasks it has claimed and not yet finished."""
        return self._turns.unfinished()

    def stop(self) -> None:
        """Claim nothing more; finish or hand back what is in hand."""
        self._stopping.set()

    def freed(self, gate_ids: Sequence[int]) -> None:
        """Look again at lanes that wait for these gates: they have room."""
        self._turns.freed(gate_ids)

    async def run(self) -> None:
        """Work until stopped."""
        await self.agent.register()
        duties = [
            asyncio.create_task(self._for_ever(name, work), name=name)
            for name, work in (
                ("ticks", self._lookout.ticks),
                ("renewal", self._lookout.renewals),
                ("watch", self._runners.watch),
                ("storing", self._turns.storing),
                *(("turns", self._turns.run) for _ in range(turns.AT_ONCE)),
            )
        ]
        duties += [
            asyncio.create_task(self.ears.run(), name="ears"),
            asyncio.create_task(self.agent.keep_alive(), name="agent"),
        ]
        self._runners.hire(self.concurrency)
        drained = asyncio.create_task(self._drain(), name="drain")
        try:
            # A duty ends only by a bug, and without it the worker is none.
            done, _ = await asyncio.wait([drained, *duties], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (drained, *duties):
                task.cancel()
            await asyncio.gather(drained, *duties, return_exceptions=True)
            await self._runners.dismiss()
            await self._statistics.flush()
            await self.bell.aclose()
            await self.agent.finish()

    async def _for_ever(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Keep a duty going: a server that is away, or a bug in one pass, does not end it."""
        while True:
            try:
                await work()
            except (*LOST, DatabaseUnavailable, *AGAIN) as error:
                log.warning("a duty of the worker waits", duty=name, error=str(error))
            except asyncpg.PostgresError as error:
                log.exception("a duty of the worker failed", duty=name, sqlstate=error.sqlstate)
            await asyncio.sleep(_PAUSE)

    async def _drain(self) -> None:
        """Once stopped: hand back what does not run; let the rest finish for a while, then that too."""
        await self._stopping.wait()
        self._turns.claiming = False
        deadline = time.monotonic() + self.grace
        # Until a turn that is under way has come back, something may still begin to run.
        while self._hands.running or self._turns.under_way:
            if time.monotonic() >= deadline:
                break
            await self._hand_back()
        now = time.monotonic()
        for running in list(self._hands.running.values()):
            running.stop(Abort.SHUTTING_DOWN, now)
        while self.in_hand or self._turns.under_way:
            await self._hand_back()

    async def _hand_back(self) -> None:
        """Give up what has not begun: also what a turn that was under way still brought."""
        for task in self._hands.withdraw(lambda _: True):
            self._outbox.put(Attempt(task, Verdict.RELEASED))
        self._outbox.news.set()
        await asyncio.sleep(_GLANCE)
