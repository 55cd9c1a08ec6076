"""The completion buffer: ended attempts that are not in the database yet."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from trapline.queue.finish import Attempt

MOST_STORED: Final = 200
# A page may have thousands of links: what one transaction holds in memory is bounded by them too.
MOST_CHILDREN_STORED: Final = 5_000


class CompletionBuffer:
    """Ended attempts by how they are finished: by the next turn, or in a transaction that also stores."""

    def __init__(self) -> None:
        self.plain: list[Attempt] = []
        self.rich: list[Attempt] = []
        # The batches that statements in progress are finishing.
        self._settling: list[Sequence[Attempt]] = []
        self.news = asyncio.Event()
        self.to_store_event = asyncio.Event()

    def __len__(self) -> int:
        return len(self.plain) + len(self.rich) + self.settling

    def __iter__(self) -> Iterator[Attempt]:
        yield from self.plain
        yield from self.rich
        for batch in self._settling:
            yield from batch

    @property
    def settling(self) -> int:
        """How many attempts statements in progress are finishing."""
        return sum(map(len, self._settling))

    def put(self, attempt: Attempt, *, rich: bool = False) -> None:
        if rich:
            self.rich.append(attempt)
            self.to_store_event.set()
        else:
            self.plain.append(attempt)
            self.news.set()

    def take(self) -> list[Attempt]:
        """Take the attempts that a turn can finish; they count as settling from now on."""
        attempts, self.plain = self.plain, []
        if attempts:
            self._settling.append(attempts)
        return attempts

    def take_to_store(self) -> list[Attempt]:
        """Take a batch of attempts whose results are stored."""
        size = children = 0
        for attempt in self.rich[:MOST_STORED]:
            children += len(attempt.result.children)
            if size and children > MOST_CHILDREN_STORED:
                break
            size += 1
        attempts, self.rich = self.rich[:size], self.rich[size:]
        self._settling.append(attempts)
        return attempts

    def settled(self, attempts: Sequence[Attempt]) -> None:
        """Drop a batch that was taken: it is in the database, or left to the expiry of its leases."""
        self._settling = [batch for batch in self._settling if batch is not attempts]
