"""Twenty questions to Python's documentation, each with the page that answers it.

`python -m benchmarks.searching.questions` crawls Debian's python3-doc behind an nginx, with
`trapline crawl --index`, and lists the rank that each page got: by words, by meaning and by both.
The questions were written before anything was asked.
"""

import asyncio
import json
import os
import tempfile
from pathlib import Path

from benchmarks import report
from benchmarks.crawlers import site
from tests.support.cli import Trapline
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.knowledge.embedding.embedders import Embedders
from trapline.knowledge.search import Mode, Searcher, SearchQuery
from trapline.model import OrganisationId
from trapline.settings import Settings

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


async def crawled(home: Path, url: str) -> int:
    """Crawl a site and index its pages, as a user does; return how many there are."""
    kept = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "LANG"}}
    opened = {"TRAPLINE_HOME": str(home), "TRAPLINE_ALLOW_NETS": "127.0.0.0/8"}
    trapline = Trapline(kept | opened, home)
    done = await trapline("crawl", url, "--index", "--delay", "0", "--json")
    if done.status:
        raise SystemExit(done.err)
    return int(json.loads(done.out)["pages"]["completed"])


async def ranks(
    database: Database, organisation_id: OrganisationId, url: str
) -> list[dict[str, object]]:
    searcher = Searcher(Embedders(database.settings.embedding))
    rows = []
    async with database.tenant_tx(organisation_id) as conn:
        for words, answer in QUESTIONS.items():
            row: dict[str, object] = {"question": words, "page": answer}
            for mode in MODES:
                query = SearchQuery(words=words, mode=mode, most=50)
                found = await searcher.search(conn, organisation_id, query)
                places = [one.uri.removeprefix(url) for one in found.items]
                row[mode] = places.index(answer) + 1 if answer in places else 0
            rows.append(row)
    return rows


async def asked() -> None:
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as home, site.serving() as root:
        url = f"{root}python/"
        count = await crawled(Path(home), url)
        async with Database.open(Settings.load({"TRAPLINE_HOME": home})) as database:
            async with database.system_tx() as conn:
                organisation_id = await tenancy.ensure_default(conn)
            rows = await ranks(database, organisation_id, url)
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
