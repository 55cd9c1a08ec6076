"""Turns: finish what has ended and claim what comes next, in one statement.

Two go on at a time, each on a connection of its own: while PostgreSQL works on the one, this process
runs what the other brought.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg

from trapline.db.connection import LOST
from trapline.errors import DatabaseUnavailable, ExitCode
from trapline.logs import get_logger
from trapline.model import JobId
from trapline.queue import metrics
from trapline.queue.agents import Agent
from trapline.queue.claiming import Claim, Claimer
from trapline.queue.finishing import AGAIN, Attempt, Finisher
from trapline.queue.lanes import Lanes, Want
from trapline.queue.leases import Leases
from trapline.queue.notices import Bell
from trapline.queue.outbox import Outbox
from trapline.queue.retries import Verdict
from trapline.queue.running import Hands
from trapline.queue.tasks import Task

log = get_logger(__name__)

AT_ONCE: Final = 2
PARTS: Final = 3
# While a turn is under way, another one begins when it has so much to finish or to claim.
WORTH_A_TURN: Final = 200
LONGEST_PAUSE: Final = 1.0
# Claimed ahead: what is done in this time, at most so many.
AHEAD_SECONDS: Final = 0.05
MOST_AHEAD: Final = 3_000
# So many times what runs may wait to be stored: one batch that PostgreSQL writes, and one that gathers.
STORED_BESIDE: Final = 2
UNKNOWN_KIND_PAUSE: Final = timedelta(seconds=5)
# A worker that is nearly full asks for the little that it has room for only so often, and stores what
# has ended in batches that took so long to gather: a statement costs as much as several tasks.
PATIENCE: Final = 0.1
_GLANCE: Final = 0.02
_PAUSE: Final = 0.2


class Pace:
    """How fast tasks are done, and so how many are claimed ahead."""

    def __init__(self) -> None:
        self.ahead = 0
        self._rate = 0.0
        self._since = time.monotonic()
        self._done = 0

    def count(self, done: int, now: float) -> None:
        self._done += done
        seconds = now - self._since
        if seconds < AHEAD_SECONDS / 10:
            return
        share = min(1.0, 10 * seconds)
        self._rate += share * (self._done / seconds - self._rate)
        self._since, self._done = now, 0
        self.ahead = min(MOST_AHEAD, round(self._rate * AHEAD_SECONDS))


@dataclass(slots=True)
class Turns:
    """Takes turns with the database for one worker."""

    agent: Agent
    claimer: Claimer
    finisher: Finisher
    lanes: Lanes
    hands: Hands
    leases: Leases
    outbox: Outbox
    bell: Bell
    # Set when there may be new lanes to look at.
    refresh: asyncio.Event
    concurrency: int
    claiming: bool = True
    under_way: int = 0
    # How many tasks the turns under way ask for.
    _asked: int = 0
    # How many attempts are being stored just now.
    _storing: int = 0
    # When the last turn began.
    _turned_at: float = 0.0
    _pace: Pace = field(default_factory=Pace)

    def unfinished(self) -> int:
        return len(self.hands) + len(self.outbox)

    def _room(self) -> int:
        """How many more tasks may be claimed.

        What waits to be stored keeps no runner from work, so more may be in hand: else handlers and
        PostgreSQL would wait for each other in turn.
        """
        stored = min(len(self.outbox.rich) + self._storing, STORED_BESIDE * self.concurrency)
        running = self.unfinished() - stored
        return self.concurrency + self._pace.ahead - running - self._asked

    def freed(self, gate_ids: Sequence[int]) -> None:
        """Look again at lanes that wait for these gates: they have room."""
        self.lanes.free((), gate_ids, time.monotonic())
        self.outbox.news.set()

    async def run(self) -> None:
        """Take turns for ever."""
        while True:
            attempts, wants = self._next()
            if attempts or wants:
                await self._turn(attempts, wants)
            else:
                await self._pause()

    def _next(self) -> tuple[list[Attempt], list[Want]]:
        """Choose what to do in the next turn; nothing, if it can be left to the one under way."""
        ended = len(self.outbox.plain)
        # What is about to be finished makes room for as much.
        room = self._room() + ended if self.claiming else 0
        if self.under_way and max(ended, room) < WORTH_A_TURN:
            return [], []
        if not ended and self._can_wait(room):
            return [], []
        # A part of what may be in hand is claimed while one runs and one is being finished.
        part = (self.concurrency + self._pace.ahead) // PARTS
        room = min(room, max(self.concurrency, part))
        attempts = self.outbox.take()
        return attempts, self.lanes.pick(room, time.monotonic()) if room > 0 else []

    def _can_wait(self, room: int) -> bool:
        """Whether there is enough in hand to ask for more a little later."""
        return room < self._few and time.monotonic() < self._turned_at + PATIENCE

    @property
    def _few(self) -> int:
        """So little room is not worth a turn of its own at once."""
        return self.concurrency // 4

    async def _pause(self) -> None:
        """Wait for an attempt to end, for a notice, or for a gate to open."""
        timeout, room = LONGEST_PAUSE, self._room()
        if self.claiming and room > 0 and not self.under_way:
            now, next_at = time.monotonic(), self.lanes.next_at()
            if next_at is not None:
                timeout = min(timeout, next_at - now)
            if self._can_wait(room):
                timeout = min(timeout, self._turned_at + PATIENCE - now)
        self.outbox.news.clear()
        try:
            async with asyncio.timeout(max(timeout, 0.001)):
                await self.outbox.news.wait()
        except TimeoutError:
            return

    async def _turn(self, attempts: Sequence[Attempt], wants: Sequence[Want]) -> None:
        asked = sum(want.take for want in wants)
        self.under_way += 1
        self._asked += asked
        self._turned_at = time.monotonic()
        try:
            with metrics.Stopwatch(metrics.CLAIM):
                claim = await self.claimer.turn(self.agent.id, attempts, wants)
        except (*LOST, DatabaseUnavailable, *AGAIN, asyncpg.PostgresError) as error:
            log.warning("a turn is taken again", error=str(error))
            self.lanes.give_back(wants, time.monotonic())
            await asyncio.sleep(_PAUSE if isinstance(error, LOST) else 0)
            await self._settle(attempts)
            return
        finally:
            self.under_way -= 1
            self._asked -= asked
            self.outbox.news.set()
        self._settled(attempts, claim.news)
        self._take(claim)

    def _take(self, claim: Claim) -> None:
        leases = Counter(task.lease_id for task in (*claim.tasks, *claim.strange))
        for lease_id, tasks in leases.items():
            self.leases.hold(lease_id, tasks)
        self.hands.put(claim.tasks)
        for task in claim.strange:
            self._refuse(task)
        metrics.IN_HAND.set(len(self.hands))

    def _refuse(self, task: Task) -> None:
        """Hand back a task of a kind that is not known here; fail one whose payload is not its kind's."""
        if isinstance(task.payload, Exception):
            reason = f"The payload does not fit the kind any more: {task.payload}"
            self.outbox.put(Attempt(task, Verdict.FAILED, ExitCode.UNEXPECTED, reason))
        else:
            later = datetime.now(UTC) + UNKNOWN_KIND_PAUSE
            self.outbox.put(Attempt(task, Verdict.RELEASED, run_at=later))

    async def _settle(self, attempts: Sequence[Attempt]) -> None:
        """Finish attempts that were already counted as settling."""
        if not attempts:
            return
        try:
            with metrics.Stopwatch(metrics.FINISH):
                news = await self.finisher.finish(attempts)
        except BaseException:
            self.outbox.settling -= len(attempts)
            raise
        self._settled(attempts, news)

    def _settled(self, attempts: Sequence[Attempt], news: Sequence[JobId]) -> None:
        self.outbox.settling -= len(attempts)
        for attempt in attempts:
            self.leases.let_go(attempt.task.lease_id)
        now = time.monotonic()
        self._pace.count(len(attempts), now)
        if attempts:
            self.lanes.free(
                (attempt.task.job_id for attempt in attempts),
                (attempt.task.gate_id for attempt in attempts),
                now,
            )
        more = {attempt.task.job_id for attempt in attempts if attempt.children}
        self.bell.ring(ready=bool(more), jobs=news)
        if more:
            # Most of them stand in lanes that are known; of others the next look at all lanes tells.
            self.lanes.stir(more, now)
            self.refresh.set()

    async def storing(self) -> None:
        """Finish attempts whose results must be stored, in batches, beside the turns."""
        while True:
            await self.outbox.rich_news.wait()
            self.outbox.rich_news.clear()
            while self.outbox.rich:
                await self._gather()
                attempts = self.outbox.take_rich()
                self._storing = len(attempts)
                try:
                    await self._settle(attempts)
                finally:
                    self._storing = 0
                    self.outbox.news.set()

    async def _gather(self) -> None:
        """Let a batch grow as long as half of the runners are at work: they do not wait for it."""
        half = self.concurrency // 2
        for _ in range(round(PATIENCE / _GLANCE)):
            busy = len(self.hands.running) >= half
            if len(self.outbox.rich) >= half or not busy or not self.claiming:
                return
            await asyncio.sleep(_GLANCE)
