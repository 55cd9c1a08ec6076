"""Latency of searches, and what an approximate index misses."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.searching.corpus import PASSAGES, TYPES, Corpus, Question, types_of
from benchmarks.searching.judged import Only
from trapline.db.pool import Database
from trapline.knowledge.filters import NO_FILTER, SearchFilter
from trapline.knowledge.search import Mode, Searcher, SearchQuery
from trapline.model import OrganisationId

FILTERS: dict[str, SearchFilter] = {"none": NO_FILTER} | {
    f"{share * 100:g} %": SearchFilter(types=(name,))
    for name, share in TYPES.items()
    if name != "text/plain"
}


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds that half of the searches, and 95 in a hundred, took at most."""

    p50: float
    p95: float
    a_second: float
    # CPU time of a search.
    python: float
    postgres: float


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Asks one organisation's index, with one searcher, as one server does."""

    database: Database
    organisation_id: OrganisationId
    searcher: Searcher
    corpus: Corpus

    @classmethod
    def of(cls, database: Database, organisation_id: OrganisationId, corpus: Corpus) -> "Stopwatch":
        return cls(database, organisation_id, Searcher(Only(corpus)), corpus)

    async def ask(self, question: Question, wanted: SearchFilter, mode: Mode = "hybrid") -> float:
        begun = time.perf_counter()
        async with self.database.tenant_tx(self.organisation_id) as conn:
            query = SearchQuery(words=question.words, filters=wanted, mode=mode)
            await self.searcher.search(conn, self.organisation_id, query)
        return (time.perf_counter() - begun) * 1000

    async def latency(
        self,
        questions: Sequence[Question],
        wanted: SearchFilter,
        clients: int,
        mode: Mode = "hybrid",
    ) -> Latency:
        """Let clients ask in turn, each as soon as it has its answer."""
        left = list(questions)
        times: list[float] = []

        async def client() -> None:
            while left:
                times.append(await self.ask(left.pop(), wanted, mode))

        begun, python, postgres = time.perf_counter(), time.process_time(), self._postgres()
        await asyncio.gather(*(client() for _ in range(clients)))
        took = time.perf_counter() - begun
        p50, p95 = np.percentile(times, [50, 95])
        return Latency(
            float(p50),
            float(p95),
            len(times) / took,
            (time.process_time() - python) * 1000 / len(times),
            (self._postgres() - postgres) * 1000 / len(times),
        )

    def _postgres(self) -> float:
        """Seconds of CPU that the server's processes have used."""
        file = self.database.settings.database.home / "postgres" / "data" / "postmaster.pid"
        server = psutil.Process(int(file.read_text().split()[0]))
        # With those that have ended.
        own = server.cpu_times()
        every = [own, *(one.cpu_times() for one in server.children())]
        gone = own.children_user + own.children_system
        return gone + sum(one.user + one.system for one in every)

    async def recall(
        self, questions: Sequence[Question], name: str, scores: NDArray[np.float32]
    ) -> float:
        """The share of the ten nearest passages under a filter that the search has among its ten.

        `scores` has a row for each passage and a column for each question.
        """
        numbers = np.arange(len(scores))
        wanted = FILTERS[name]
        if wanted.types:
            numbers = numbers[types_of(numbers // PASSAGES) == list(TYPES).index(wanted.types[0])]
        shares = []
        for column, question in enumerate(questions):
            best = np.argsort(-scores[numbers, column], kind="stable")[:10]
            nearest = {int(number) for number in numbers[best]}
            shares.append(len(nearest & await self._nearest(question, wanted)) / len(nearest))
        return float(np.mean(shares))

    async def _nearest(self, question: Question, wanted: SearchFilter) -> set[int]:
        async with self.database.tenant_tx(self.organisation_id) as conn:
            query = SearchQuery(
                words=question.words,
                filters=wanted,
                mode="vector",
                granularity="chunk",
                collapse=False,
            )
            found = await self.searcher.search(conn, self.organisation_id, query)
            rows = await conn.fetch(
                "SELECT substr(e.path, 2)::bigint * $2 + c.ordinal AS number FROM knowledge.chunk c"
                " JOIN knowledge.entry e ON e.id = c.entry_id WHERE c.id = ANY($1)",
                [one.chunk_id for one in found.items],
                PASSAGES,
            )
        return {row["number"] for row in rows}
