"""Doing together what is asked for at the same time: while one batch is under way, the next gathers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Together(Generic[T]):
    """Hands items to `work` in batches; whoever adds one may wait until its batch is done."""

    def __init__(self, work: Callable[[Sequence[T]], Awaitable[None]], *, most: int = 100) -> None:
        self._work = work
        self._most = most
        self._items: list[tuple[T, asyncio.Future[None]]] = []
        self._working: asyncio.Task[None] | None = None

    def add(self, item: T) -> asyncio.Future[None]:
        """Add an item; the answer is done when its batch is, and fails when that fails."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._items.append((item, done))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._run(), name="together")
        return done

    async def aclose(self) -> None:
        """Do what was added."""
        if self._working is not None:
            await self._working

    async def _run(self) -> None:
        while self._items:
            batch, self._items = self._items[: self._most], self._items[self._most :]
            try:
                await self._work([item for item, _ in batch])
            except Exception as error:  # noqa: BLE001 (it is raised to those who wait)
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
            else:
                for _, done in batch:
                    if not done.done():
                        done.set_result(None)
