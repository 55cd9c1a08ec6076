"""Attempts that have ended, on their way into the database."""

import asyncio
from typing import Final

from trapline.queue.finishing import Attempt

MOST_STORED: Final = 200
# A page may have thousands of links: what one transaction holds in memory is bounded by them too.
MOST_CHILDREN_STORED: Final = 5_000


class Outbox:
    """Ended attempts by how they are finished: in a turn, or in a transaction that also stores."""

    def __init__(self) -> None:
        self.plain: list[Attempt] = []
        self.rich: list[Attempt] = []
        # Those that a statement under way is finishing.
        self.settling = 0
        self.news = asyncio.Event()
        self.rich_news = asyncio.Event()

    def __len__(self) -> int:
        return len(self.plain) + len(self.rich) + self.settling

    def put(self, attempt: Attempt, *, rich: bool = False) -> None:
        if rich:
            self.rich.append(attempt)
            self.rich_news.set()
        else:
            self.plain.append(attempt)
            self.news.set()

    def take(self) -> list[Attempt]:
        """Hand out what a turn can finish; it counts as settling from now on."""
        attempts, self.plain = self.plain, []
        self.settling += len(attempts)
        return attempts

    def take_rich(self) -> list[Attempt]:
        """The same for attempts with something to store, a batch at a time."""
        size = children = 0
        for attempt in self.rich[:MOST_STORED]:
            children += len(attempt.children)
            if size and children > MOST_CHILDREN_STORED:
                break
            size += 1
        attempts, self.rich = self.rich[:size], self.rich[size:]
        self.settling += len(attempts)
        return attempts
