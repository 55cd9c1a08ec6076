"""Micro-batches: concurrent calls share one statement; while it runs, the next batch collects."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class MicroBatch(Generic[T, R]):
    """Hands items to `work` in batches of at most `most`; `work` returns an answer for each, in order."""

    def __init__(
        self, work: Callable[[Sequence[T]], Awaitable[Sequence[R]]], *, most: int = 100
    ) -> None:
        self._work = work
        self._most = most
        self._items: list[tuple[T, asyncio.Future[R]]] = []
        self._worker: asyncio.Task[None] | None = None

    def add(self, item: T) -> asyncio.Future[R]:
        """Add an item; the future has its answer, or the exception that its batch raised."""
        # A future of its own: a caller that is cancelled does not take the answer from the others.
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._items.append((item, answer))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run(), name="micro-batch")
        return answer

    async def _run(self) -> None:
        while self._items:
            batch, self._items = self._items[: self._most], self._items[self._most :]
            try:
                answers = await self._work([item for item, _ in batch])
            except Exception as error:  # noqa: BLE001 (it is raised to the callers)
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
            else:
                for (_, future), answer in zip(batch, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
