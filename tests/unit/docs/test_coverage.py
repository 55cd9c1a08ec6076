"""docs/coverage lists all that the reference documents name, and names only what exists."""

from pathlib import Path

import pytest

from tests.support.coverage.documents import NAMES, ROWS, listed
from tests.support.coverage.page import (
    INDEX,
    PAGES,
    Row,
    State,
    UnreadablePage,
    counts,
    parse,
    read_pages,
    repeated,
    wrong_states,
)
from tests.support.coverage.references import Tree, broken
from tests.support.coverage.schema import names
from tests.support.paths import ROOT

HEAD = "# Document\n\n| what | where it lives here | proof |\n|---|---|---|\n"

SCHEMA = r"""
\restrict token
-- CREATE TABLE queue.commented (id int);
CREATE SCHEMA queue;
CREATE TYPE queue.state AS ENUM ('ready', 'it''s', 'done');
CREATE TABLE queue.job (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    "limit" integer,
    price numeric(10,2) DEFAULT 0,
    note text DEFAULT 'a; b, CREATE TABLE queue.quoted (',
    CONSTRAINT job_limit_check CHECK (("limit" >= 0)),
    CHECK (price > 0)
) PARTITION BY RANGE (id);
ALTER TABLE ONLY queue.job ADD CONSTRAINT job_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX job_price_idx ON ONLY queue.job USING btree (price);
CREATE POLICY own ON queue.job USING (true);
CREATE TRIGGER stamp BEFORE UPDATE OF note ON queue.job EXECUTE FUNCTION queue.stamp();
CREATE OR REPLACE FUNCTION queue.stamp() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN CREATE TABLE queue.inner (id int); RETURN NEW; END $body$;
CREATE VIEW nuq.group_crawl WITH (security_invoker='true') AS
 WITH j AS (SELECT hidden FROM queue.job)
 SELECT job.id, CASE WHEN (a IS DISTINCT FROM b) THEN 1 ELSE 2 END AS status,
    EXTRACT(epoch FROM job.made) AS ttl
   FROM queue.job;
CREATE VIEW nuq.named (one, two) AS SELECT 1, 2;
"""


def rows(*lines: str) -> list[Row]:
    return parse(HEAD + "\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def page() -> list[Row]:
    return read_pages(PAGES)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    files = {
        "Makefile": "check: setup ## Check\n",
        "tests/unit/test_a.py": "def test_one(): ...\nclass TestTwo:\n    async def test_in(self): ...\n",
        "src/trapline/db/sql/schema.sql": SCHEMA,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return Tree(tmp_path)


def test_every_row_has_one_of_the_three_states(page: list[Row]) -> None:
    assert list(wrong_states(page)) == []


def test_what_the_page_names_exists(page: list[Row]) -> None:
    assert list(broken(page, Tree(ROOT))) == []


def test_no_row_is_listed_twice(page: list[Row]) -> None:
    assert repeated(page) == []


def test_the_counts_in_the_index_are_right(page: list[Row]) -> None:
    assert counts(page) in INDEX.read_text(encoding="utf-8"), (
        "run .venv/bin/python -m tests.support.coverage"
    )


def test_every_row_belongs_to_a_document(page: list[Row]) -> None:
    assert {row.document for row in page} == set(NAMES)


@pytest.mark.parametrize("document", NAMES)
def test_a_document_is_listed_whole(page: list[Row], document: str) -> None:
    there = [row.name for row in page if row.document == document]
    assert [name for name in listed(document) if name not in there] == []
    assert len(there) >= ROWS[document]


def test_a_removed_column_is_missed() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    kept = [line for line in text.splitlines() if not line.startswith("| `nuq.queue_scrape.lock`")]
    assert len(kept) == len(text.splitlines()) - 1
    there = {row.name for row in parse("\n".join(kept)) if row.document.startswith("NuQ")}
    assert set(listed("NuQ and its webhook bridge")) - there == {"nuq.queue_scrape.lock"}


@pytest.mark.parametrize(
    ("place", "proof", "state"),
    [
        ("not yet", "not yet", State.NOT_YET),
        ("not yet; planned: queue.job", "not yet", State.NOT_YET),
        ("next: with the browser", "next", State.NEXT),
        ("decided against: no need", "—", State.DECIDED_AGAINST),
        ("decided against: no need", "`tests/unit/test_a.py::test_one`", State.DECIDED_AGAINST),
        ("`queue.job`, once", "not yet", State.PLACED),
        ("`queue.job`", "`tests/unit/test_a.py::test_one`", State.PROVEN),
        ("`queue.job`", "`benchmarks/queue.py`", State.PROVEN),
    ],
)
def test_good_states(place: str, proof: str, state: State) -> None:
    good = rows(f"| `x` — note | {place} | {proof} |")
    assert list(wrong_states(good)) == []
    assert [(row.name, row.state) for row in good] == [("x", state)]


@pytest.mark.parametrize(
    ("place", "proof"),
    [
        ("not yet, perhaps", "not yet"),
        ("not yet; planned:", "not yet"),
        ("not yet", "`tests/unit/test_a.py::test_one`"),
        ("not yet", "—"),
        ("decided against", "—"),
        ("decided against: ", "—"),
        ("decided against: no need", "not yet"),
        ("somewhere in the queue", "not yet"),
        ("somewhere", "`tests/unit/test_a.py::test_one`"),
        ("`queue.job`", "—"),
        ("`queue.job`", "I tried it"),
        ("`queue.job`", "`tests/unit/test_a.py`"),
        ("`queue.job`", "`trapline.errors`"),
    ],
)
def test_bad_states(place: str, proof: str) -> None:
    assert len(list(wrong_states(rows(f"| x | {place} | {proof} |")))) == 1


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "| x | not yet |\n",
        HEAD + "| x | not yet | not yet | more |\n",
        HEAD + "| x |  | not yet |\n",
        "| what | where | proof |\n|---|---|---|\n| x | not yet | not yet |\n",
    ],
)
def test_unreadable_tables_are_refused(text: str) -> None:
    with pytest.raises(UnreadablePage):
        parse(text)


def test_repeated_names_are_found() -> None:
    twice = rows("| `x` | not yet | not yet |", "| x — again | not yet | not yet |")
    assert repeated(twice) == ["Document: x is listed 2 times"]


def test_wrong_counts_differ() -> None:
    one = rows("| x | not yet | not yet |")
    assert counts(one) != counts(rows("| x | decided against: no need | — |"))
    assert counts(one).splitlines()[-1] == "| all | 1 | 0 | 0 | 1 | 0 | 0 |"


@pytest.mark.parametrize(
    "reference",
    [
        "./Makefile",
        "tests/unit/",
        "tests/unit/test_a.py::test_one",
        "tests/unit/test_a.py::TestTwo::test_in",
        "make check",
        "trapline.errors",
        "trapline.errors.ExitCode.CONTENT",
        "trapline.errors.Outcome.sentence",
        "trapline.settings.DatabaseSettings.url",
        "queue.job",
        "queue.job.limit",
        "queue.job.job_pkey",
        "nuq.group_crawl.status",
    ],
)
def test_what_exists_is_found(tree: Tree, reference: str) -> None:
    assert tree.problem(reference) is None


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "Makefile",
        "./makefile.txt",
        "/etc/passwd",
        "tests/../../x",
        "tests/unit/test_b.py::test_one",
        "tests/unit/test_a.py::test_two",
        "tests/unit/test_a.py::test_in",
        "tests/unit/test_a.py::",
        "make setup",
        "trapline.nowhere",
        "trapline.errors.Nowhere",
        "trapline.errors.ExitCode.NOWHERE",
        "trapline.settings.DatabaseSettings.nowhere",
        "trapline.settings.DatabaseSettings.url.nowhere",
        "queue.task",
        "queue.job.status",
        "queue.inner",
        "a sentence",
    ],
)
def test_what_does_not_exist_is_found_out(tree: Tree, reference: str) -> None:
    assert tree.problem(reference) is not None


def test_broken_names_are_told_with_their_row(tree: Tree) -> None:
    bad = rows("| x | not yet; planned: queue.task | not yet |", "| y | `queue.task` | not yet |")
    assert list(broken(bad, tree)) == ["page:6, y: `queue.task` is not in schema.sql"]


def test_a_table_cannot_be_named_without_a_schema(tmp_path: Path) -> None:
    assert "no schema.sql" in (Tree(tmp_path).problem("queue.job") or "")


def test_an_empty_schema_has_no_names() -> None:
    assert names("") == frozenset()


def test_names_of_a_schema() -> None:
    assert names(SCHEMA) == {
        "queue.state", "queue.state.ready", "queue.state.it''s", "queue.state.done",
        "queue.job", "queue.job.id", "queue.job.limit", "queue.job.price", "queue.job.note",
        "queue.job.job_limit_check", "queue.job.job_pkey", "queue.job_pkey", "queue.job_price_idx",
        "queue.job.own", "queue.job.stamp", "queue.stamp",
        "nuq.group_crawl", "nuq.group_crawl.id", "nuq.group_crawl.status", "nuq.group_crawl.ttl",
        "nuq.named", "nuq.named.one", "nuq.named.two",
    }  # fmt: skip
