"""Twenty questions to Python's documentation, each with the page that answers it.

`python -m benchmarks.searching.questions` reads Debian's python3-doc, indexes it as a crawl would
and lists the rank that each page got: by words, by meaning and by both. The questions were written
before anything was asked.
"""

import asyncio
import hashlib
import tempfile
from pathlib import Path
from uuid import uuid4

from benchmarks import report
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.extract import extract
from trapline.knowledge import indexing
from trapline.knowledge.chunking import passages
from trapline.knowledge.embedding.embedders import Embedders
from trapline.knowledge.indexing import Entry, Indexable, Place
from trapline.knowledge.searching import Mode, Query, Searcher
from trapline.model import OrganisationId, SourceId
from trapline.settings import Settings

FOLDER = Path("/usr/share/doc/python3-doc/html")
SITE = "https://docs.test/"
QUESTIONS = {
    "read a csv file": "library/csv.html",
    "parse command line arguments": "library/argparse.html",
    "regular expression syntax": "library/re.html",
    "schedule a callback in the event loop": "library/asyncio-eventloop.html",
    "create a temporary directory that is removed afterwards": "library/tempfile.html",
    "compare two sequences of lines and show the differences": "library/difflib.html",
    "how are modules found when they are imported": "reference/import.html",
    "walk a directory tree": "library/os.html",
    "compress bytes with gzip": "library/gzip.html",
    "exact decimal arithmetic for money": "library/decimal.html",
    "binary search in a sorted list": "library/bisect.html",
    "priority queue": "library/heapq.html",
    "send an email over smtp": "library/smtplib.html",
    "what is a list comprehension": "tutorial/datastructures.html",
    "class with fields and an automatic constructor": "library/dataclasses.html",
    "measure the execution time of small bits of code": "library/timeit.html",
    "run a child process and capture its output": "library/subprocess.html",
    "embed the interpreter in a C program": "extending/embedding.html",
    "hash a password with a salt": "library/hashlib.html",
    "time zones and daylight saving": "library/zoneinfo.html",
}
MODES: tuple[Mode, ...] = ("keyword", "vector", "hybrid")
BATCH = 20


async def indexed(database: Database, organisation_id: OrganisationId) -> int:
    """Index every page; return how many there are."""
    place = Place(organisation_id, SourceId(uuid4()), 0)
    async with database.system_tx() as conn:
        await conn.execute(
            "INSERT INTO knowledge.source (id, organisation_id, kind, name, uri)"
            " VALUES ($1, $2, 'site', 'python3-doc', $3)",
            place.source_id,
            organisation_id,
            SITE,
        )
    files = sorted(
        file for file in FOLDER.rglob("*.html") if file.relative_to(FOLDER).parts[0][0] != "_"
    )
    embedder = Embedders(database.settings).default
    for at in range(0, len(files), BATCH):
        ready = []
        for file in files[at : at + BATCH]:
            uri = SITE + str(file.relative_to(FOLDER))
            page = extract(file.read_bytes(), "text/html", uri)
            cut = list(passages(page.markdown))
            title = page.metadata.headline or page.metadata.title
            vectors = await embedder.embed([indexing.indexed_words(title, one) for one in cut])
            digest = hashlib.sha256(page.markdown.encode()).digest()
            entry = Entry(uri=uri, title=title, language=page.language, content_hash=digest)
            ready.append(Indexable(entry, cut, vectors))
        async with database.system_tx() as conn:
            await indexing.store_entries(conn, place, ready, embedder.model)
    return len(files)


async def ranks(database: Database, organisation_id: OrganisationId) -> list[dict[str, object]]:
    searcher = Searcher(Embedders(database.settings))
    rows = []
    async with database.tenant_tx(organisation_id) as conn:
        for words, answer in QUESTIONS.items():
            row: dict[str, object] = {"question": words, "page": answer}
            for mode in MODES:
                query = Query(words=words, mode=mode, most=50)
                found = await searcher.search(conn, organisation_id, query)
                places = [one.uri.removeprefix(SITE) for one in found.items]
                row[mode] = places.index(answer) + 1 if answer in places else 0
            rows.append(row)
    return rows


async def asked() -> None:
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as home:
        async with Database.open(Settings(home=Path(home))) as database:
            async with database.system_tx() as conn:
                organisation_id = await tenancy.ensure_default(conn)
            count = await indexed(database, organisation_id)
            rows = await ranks(database, organisation_id)
    figures: dict[str, object] = {"pages": count}
    for mode in MODES:
        places = [int(str(row[mode])) for row in rows]
        figures[f"{mode}_first"] = places.count(1)
        figures[f"{mode}_in_ten"] = sum(1 <= place <= 10 for place in places)
        figures[f"{mode}_mrr"] = round(sum(1 / place for place in places if place) / len(rows), 3)
    report(
        "python3-doc: the rank of the page that answers (0: not among the first 50)", rows, figures
    )


if __name__ == "__main__":
    asyncio.run(asked())
