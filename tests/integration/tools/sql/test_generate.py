"""The generator of typed functions: what it says of a query is what the query does."""

import re
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from tests.support.postgres import on_database
from tools.sql import generate, queries
from tools.sql.analysis import Analyser, Column, Parameter, Signature
from tools.sql.queries import Query, QueryError
from trapline.db import connection
from trapline.db.connection import OwnConnection

HERE = Path(__file__).parent / "typed_sql"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def typed_dsn(server_dsn: str) -> AsyncIterator[str]:
    name = f"typed_{uuid4().hex}"
    server = await asyncpg.connect(server_dsn)
    await server.execute(f"CREATE DATABASE {name}")
    owner = await asyncpg.connect(on_database(server_dsn, name))
    await owner.execute((HERE / "schema.sql").read_text())
    await owner.close()
    yield on_database(server_dsn, name)
    await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await server.close()


@pytest.fixture
async def conn(typed_dsn: str) -> AsyncIterator[OwnConnection]:
    opened = await connection.connect(typed_dsn, {})
    yield opened
    await opened.close()


async def signature(conn: OwnConnection, query: Query) -> Signature:
    return await (await Analyser.of(conn)).signature(query)


def described(parts: Iterable[Parameter | Column]) -> str:
    return ", ".join(f"{p.name} {p.type}{'?' if p.nullable else ''}" for p in parts) or "nothing"


@pytest.mark.parametrize("query", queries.read(HERE / "cases.sql"), ids=lambda q: q.name)
async def test_types_and_nullability(conn: OwnConnection, query: Query) -> None:
    expected = re.search(r"takes: (.*) gives: (.*)", query.purpose)
    assert expected is not None
    found = await signature(conn, query)
    assert (described(found.parameters), described(found.columns)) == expected.groups()


def query_of(directory: Path, sql: str) -> Query:
    path = directory / "topic.sql"
    path.write_text(f"-- name: Subject :one\n-- Under test.\n{sql};\n")
    (query,) = queries.read(path)
    return query


ADD_JOB = "INSERT INTO queue.job (organisation_id)"


@pytest.mark.parametrize(
    ("sql", "certain"),
    [
        ("SELECT count(*) AS n FROM queue.job", True),
        ("SELECT queue.bump(sqlc.arg(job_id)) AS n", True),
        ("SELECT EXISTS (SELECT FROM queue.job) AS any", True),
        (f"{ADD_JOB} VALUES (sqlc.arg(o)) RETURNING id", True),
        (f"{ADD_JOB} VALUES (sqlc.arg(o)) ON CONFLICT DO NOTHING RETURNING id", False),
        (f"{ADD_JOB} SELECT id FROM queue.job RETURNING id", False),
        ("SELECT count(*) AS n FROM queue.job GROUP BY state", False),
        ("SELECT count(*) AS n FROM queue.job HAVING count(*) > 1", False),
        ("SELECT id FROM queue.job WHERE id = sqlc.arg(job_id)", False),
        ("SELECT 1 AS n WHERE sqlc.arg(yes)::bool", False),
        ("SELECT unnest(sqlc.arg(many)::int[]) AS n", False),
        ("SELECT 1 AS n LIMIT sqlc.arg(most)", False),
        ("SELECT 1 AS n UNION SELECT 2", False),
    ],
)
async def test_whether_a_row_is_sure_to_come(
    conn: OwnConnection, tmp_path: Path, sql: str, certain: bool
) -> None:
    assert (await signature(conn, query_of(tmp_path, sql))).always_one_row is certain


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT id FROM queue.nowhere", 'Subject: relation "queue.nowhere" does not exist'),
        ("SELECT 1 AS a, 2 AS a", "column 'a' needs a name of its own"),
        ("SELECT 1", r"column '\?column\?' needs a name of its own"),
        ("SELECT '(1,2)'::point AS p", "no Python type for point"),
    ],
)
async def test_a_query_that_cannot_be_typed_is_named(
    conn: OwnConnection, tmp_path: Path, sql: str, message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        await signature(conn, query_of(tmp_path, sql))


async def test_rows_of_one_name_have_one_shape(conn: OwnConnection, tmp_path: Path) -> None:
    text = "-- name: {0} :many\n-- P.\n-- returns: Row\nSELECT 1 AS a, 2 AS {0};\n"
    write(tmp_path, text.format("B") + text.format("C"))
    with pytest.raises(QueryError, match="Row has other columns in another query"):
        await generate.modules(tmp_path, conn)


async def test_the_generated_module_does_what_it_says(conn: OwnConnection, tmp_path: Path) -> None:
    path = write(tmp_path, (HERE / "tasks.sql").read_text())
    tasks = ModuleType("tasks")
    exec((await generate.modules(tmp_path, conn))[path], vars(tasks))  # noqa: S102 (we made it)

    job = await tasks.add_job(conn, organisation_id=uuid4(), options={"a": [1, None]})
    assert type(job) is tasks.JobRow
    assert (job.options, job.state, job.finished_at) == ({"a": [1, None]}, "queued", None)
    assert await tasks.get_job(conn, job_id=job.id) == job
    assert await tasks.get_job(conn, job_id=uuid4()) is None
    urls = ["https://a/1", "https://a/2", "https://a/1"]
    assert await tasks.add_tasks(conn, job_id=job.id, urls=urls, lanes=["x", None, None]) == 2
    assert await tasks.lanes(conn) == ["x", None]
    assert await tasks.count_ready(conn) == 2
    claimed = await tasks.claim_tasks(conn, batch=10, lease=1, lease_time=timedelta(minutes=1))
    assert [(row.url, row.lane) for row in claimed] == [("https://a/1", "x"), ("https://a/2", None)]
    with pytest.raises(AttributeError):
        claimed[0].url = "https://b"
    assert await tasks.forget(conn) is None
    assert await conn.fetchval("SELECT count(*) FROM queue.leased") == 0


def write(source: Path, text: str) -> Path:
    """Write a file of queries and return where its module belongs."""
    path = source / "queue" / "sql" / "tasks.sql"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path.with_suffix(".py")
