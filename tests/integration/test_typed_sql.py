"""The generator of typed functions: what it says of a query is what the query does."""

import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from uuid import uuid4

import asyncpg
import pytest

from tests.postgres import on_database
from tools.sql import generate, queries
from tools.sql.analysis import Analyser, Signature
from tools.sql.queries import QueryError
from trapline.db import connection

Owner = asyncpg.Connection

SCHEMA = """
CREATE SCHEMA queue;
CREATE TYPE queue.state AS ENUM ('queued', 'active', 'done');
CREATE TYPE queue.child AS (url text, hash bytea, depth int);
CREATE DOMAIN queue.priority AS smallint CHECK (VALUE > 0);
CREATE TABLE queue.job (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL,
    state queue.state NOT NULL DEFAULT 'queued',
    priority queue.priority NOT NULL DEFAULT 5,
    remaining bigint NOT NULL DEFAULT 0,
    options jsonb NOT NULL DEFAULT '{}',
    tags text[] NOT NULL DEFAULT '{}',
    retry_of uuid REFERENCES queue.job (id),
    finished_at timestamptz,
    done boolean NOT NULL GENERATED ALWAYS AS (remaining = 0) STORED
);
CREATE TABLE queue.ready (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id uuid NOT NULL REFERENCES queue.job (id),
    url text NOT NULL UNIQUE,
    lane text
);
CREATE TABLE queue.leased (
    id bigint PRIMARY KEY,
    job_id uuid NOT NULL,
    url text NOT NULL,
    lease bigint NOT NULL,
    expires timestamptz NOT NULL
);
CREATE TABLE queue.event (
    job_id uuid NOT NULL, number bigint NOT NULL, at timestamptz NOT NULL, body jsonb
) PARTITION BY RANGE (at);
CREATE TABLE queue.event_all PARTITION OF queue.event DEFAULT;
CREATE VIEW queue.status AS
    SELECT j.id, j.state, r.url, count(*) OVER () AS n
    FROM queue.job j LEFT JOIN queue.ready r ON r.job_id = j.id;
CREATE FUNCTION queue.finish(ids bigint[], OUT task_id bigint, OUT job_id uuid)
    RETURNS SETOF record LANGUAGE sql AS 'SELECT id, job_id FROM queue.leased';
CREATE FUNCTION queue.bump(job uuid) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
"""


@pytest.fixture(scope="module")
async def typed_dsn(server_dsn: str) -> AsyncIterator[str]:
    """A database with a schema that is as hard as a queue's."""
    name = f"typed_{uuid4().hex}"
    server = await asyncpg.connect(server_dsn)
    await server.execute(f"CREATE DATABASE {name}")
    dsn = on_database(server_dsn, name)
    owner = await asyncpg.connect(dsn)
    await owner.execute(SCHEMA)
    await owner.close()
    yield dsn
    await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await server.close()


@pytest.fixture
async def conn(typed_dsn: str) -> AsyncIterator[Owner]:
    opened = await connection.connect(typed_dsn, {})
    yield opened
    await opened.close()


async def analyse(conn: Owner, directory: Path, sql: str, command: str = "many") -> Signature:
    path = directory / "topic.sql"
    path.write_text(f"-- name: Subject :{command}\n-- Under test.\n{sql};\n")
    (query,) = queries.read(path)
    return await (await Analyser.of(conn)).signature(query)


def described(parts: tuple[object, ...]) -> str:
    return ", ".join(f"{p.name} {p.type}{'?' if p.nullable else ''}" for p in parts)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sql", "parameters", "columns"),
    [
        # Columns of tables: nullable as declared, ids by table, by name, by foreign key.
        (
            "SELECT id, job_id, lane FROM queue.ready WHERE id > sqlc.arg(hint)",
            "hint int",
            "id int, job_id JobId, lane str?",
        ),
        (
            "SELECT id, retry_of, priority, tags, state, done FROM queue.job"
            " WHERE state = ANY(sqlc.arg(states)) AND priority < sqlc.arg(least)",
            "states Sequence[Literal['queued', 'active', 'done']], least int",
            "id JobId, retry_of JobId?, priority int, tags list[str],"
            " state Literal['queued', 'active', 'done'], done bool",
        ),
        # Joins: what an outer join may null, and what it may not.
        (
            "SELECT j.id, r.id AS task_id, r.url, coalesce(r.url, '') AS text FROM queue.job j"
            " LEFT JOIN queue.ready r ON r.job_id = j.id",
            "",
            "id JobId, task_id TaskId?, url str?, text str",
        ),
        (
            "SELECT id, l.url AS a, r.url AS b FROM queue.ready r FULL JOIN queue.leased l USING (id)",
            "",
            "id int?, a str?, b str?",
        ),
        (
            "SELECT j.id, t.url FROM queue.job j LEFT JOIN LATERAL"
            " (SELECT url FROM queue.ready r WHERE r.job_id = j.id LIMIT 1) t ON true",
            "",
            "id JobId, url str?",
        ),
        (
            "SELECT j.id, t.url FROM queue.job j CROSS JOIN LATERAL"
            " (SELECT url FROM queue.ready r WHERE r.job_id = j.id LIMIT 1) t",
            "",
            "id JobId, url str",
        ),
        # Views are looked through.
        (
            "SELECT * FROM queue.status",
            "",
            "id JobId, state Literal['queued', 'active', 'done'], url str?, n int",
        ),
        # Writing CTEs, as a claim and a finish have them.
        (
            "WITH gone AS (DELETE FROM queue.ready r USING (SELECT id FROM queue.ready"
            "   WHERE id > sqlc.arg(hint) ORDER BY id LIMIT sqlc.arg(batch) FOR UPDATE SKIP LOCKED) c"
            "   WHERE r.id = c.id RETURNING r.*),"
            " taken AS (INSERT INTO queue.leased SELECT id, job_id, url, sqlc.arg(lease),"
            "   now() + sqlc.arg(lease_time)::interval FROM gone RETURNING *)"
            " SELECT t.id AS task_id, t.expires, g.lane, row_number() OVER () AS n"
            " FROM taken t JOIN gone g USING (id)",
            "hint int, batch int, lease int, lease_time timedelta",
            "task_id TaskId, expires datetime, lane str?, n int",
        ),
        (
            "WITH given AS (SELECT * FROM unnest(sqlc.arg(task_ids)::bigint[],"
            "   sqlc.arg(results)::text[], sqlc.narg(notes)::text[]) WITH ORDINALITY"
            "   AS g(id, result, note, n)),"
            " gone AS (DELETE FROM queue.leased l USING given g WHERE l.id = g.id"
            "   RETURNING l.job_id, g.result, g.note, g.n),"
            " counted AS (UPDATE queue.job j SET remaining = j.remaining - c.n FROM"
            "   (SELECT job_id, count(*) AS n FROM gone GROUP BY job_id) c WHERE j.id = c.job_id"
            "   RETURNING j.id, j.remaining)"
            " SELECT g.*, c.remaining, g.n > 1 AS later FROM gone g"
            " LEFT JOIN counted c ON c.id = g.job_id",
            "task_ids Sequence[TaskId], results Sequence[str], notes Sequence[str | None]?",
            "job_id JobId, result str, note str?, n int, remaining int?, later bool",
        ),
        (
            "INSERT INTO queue.ready (job_id, url) SELECT * FROM unnest(sqlc.arg(job_ids)::uuid[],"
            " sqlc.arg(urls)::text[]) ON CONFLICT DO NOTHING RETURNING id AS task_id",
            "job_ids Sequence[JobId], urls Sequence[str]",
            "task_id TaskId",
        ),
        (
            "UPDATE queue.job SET remaining = 0 RETURNING old.remaining AS was, new.remaining AS is_now",
            "",
            "was int, is_now int",
        ),
        (
            "INSERT INTO queue.job (organisation_id) VALUES (sqlc.arg(organisation_id))"
            " RETURNING old.remaining AS was",
            "organisation_id OrganisationId",
            "was int?",
        ),
        (
            "MERGE INTO queue.job j USING (SELECT sqlc.arg(job_id)::uuid AS id) s ON j.id = s.id"
            " WHEN MATCHED THEN UPDATE SET remaining = 1 RETURNING merge_action() AS done, j.id",
            "job_id JobId",
            "done str?, id JobId",
        ),
        # Aggregates: a group has a row, a whole table may have none.
        (
            "SELECT count(*) AS n, max(remaining) AS most, array_agg(state::text) AS states,"
            " coalesce(sum(remaining), 0)::bigint AS total FROM queue.job",
            "",
            "n int, most int?, states list[str]?, total int",
        ),
        (
            "SELECT organisation_id, max(remaining) AS most, max(finished_at) AS last,"
            " max(remaining) FILTER (WHERE done) AS some FROM queue.job GROUP BY 1",
            "",
            "organisation_id OrganisationId, most int, last datetime?, some int?",
        ),
        # Set operations and recursion: nullable where any branch is.
        (
            "SELECT url, lane FROM queue.ready UNION ALL SELECT url, url FROM queue.leased"
            " UNION ALL SELECT NULL, 'x'",
            "",
            "url str?, lane str?",
        ),
        (
            "WITH RECURSIVE up AS (SELECT id, retry_of, 1 AS depth FROM queue.job"
            " WHERE id = sqlc.arg(job_id) UNION ALL SELECT j.id, j.retry_of, up.depth + 1"
            " FROM up JOIN queue.job j ON j.id = up.retry_of) SELECT id AS job_id, depth FROM up",
            "job_id JobId",
            "job_id JobId, depth int",
        ),
        # Functions say nothing of NULL; the query may.
        (
            "SELECT * FROM queue.finish(sqlc.arg(ids))",
            "ids Sequence[int]",
            "task_id TaskId?, job_id JobId?",
        ),
        (
            'SELECT task_id AS "task_id!", j.remaining AS "remaining?"'
            " FROM queue.finish(sqlc.arg(ids)) JOIN queue.job j ON j.id = job_id",
            "ids Sequence[int]",
            "task_id TaskId, remaining int?",
        ),
        # JSON, composites, expressions.
        (
            "SELECT options->>'url' AS url, options->'a' AS a, options @> sqlc.arg(part) AS has,"
            " jsonb_build_object('k', remaining) AS built, (options->'n')::int AS n FROM queue.job",
            "part Any",
            "url str?, a Any?, has bool, built Any, n int?",
        ),
        (
            "SELECT c.url, c.depth FROM unnest(sqlc.arg(children)::queue.child[]) AS c",
            "children Sequence[tuple[str | None, bytes | None, int | None]]",
            "url str?, depth int?",
        ),
        (
            "SELECT x.url FROM jsonb_to_recordset(sqlc.arg(doc)) AS x(url text, depth int)",
            "doc Any",
            "url str?",
        ),
        (
            "SELECT CASE WHEN done THEN 1 END AS a, CASE WHEN done THEN 1 ELSE 2 END AS b,"
            " EXISTS (SELECT FROM queue.ready) AS c, (SELECT max(id) FROM queue.ready) AS d,"
            " (SELECT count(*) FROM queue.ready) AS e, ARRAY(SELECT url FROM queue.ready) AS f,"
            " nullif(remaining, 0) AS g, remaining / 2 AS h, now() - finished_at AS i,"
            " greatest(finished_at, now()) AS j, finished_at IS NULL AS k FROM queue.job",
            "",
            "a int?, b int, c bool, d int?, e int, f list[str], g int?, h int, i timedelta?,"
            " j datetime, k bool",
        ),
        (
            "SELECT a, b FROM ROWS FROM (unnest(sqlc.arg(items)::int[]), generate_series(1, 3))"
            " AS t(a, b)",
            "items Sequence[int]",
            "a int?, b int?",
        ),
        ("SELECT n FROM generate_series(1, sqlc.arg(last)::int) AS n", "last int", "n int"),
        (
            "SELECT body, at FROM queue.event WHERE sqlc.narg(job_id)::uuid IS NULL"
            " OR job_id = sqlc.narg(job_id)",
            "job_id JobId?",
            "body Any?, at datetime",
        ),
    ],
)
async def test_types_and_nullability(
    conn: Owner, tmp_path: Path, sql: str, parameters: str, columns: str
) -> None:
    signature = await analyse(conn, tmp_path, sql)
    assert described(signature.parameters) == parameters
    assert described(signature.columns) == columns


@pytest.mark.parametrize(
    ("sql", "certain"),
    [
        ("SELECT count(*) AS n FROM queue.job", True),
        ("SELECT queue.bump(sqlc.arg(job_id)) AS n", True),
        ("SELECT EXISTS (SELECT FROM queue.job) AS any", True),
        ("INSERT INTO queue.job (organisation_id) VALUES (sqlc.arg(o)) RETURNING id", True),
        (
            "INSERT INTO queue.job (organisation_id) VALUES (sqlc.arg(o))"
            " ON CONFLICT DO NOTHING RETURNING id",
            False,
        ),
        ("INSERT INTO queue.job (organisation_id) SELECT id FROM queue.job RETURNING id", False),
        ("SELECT count(*) AS n FROM queue.job GROUP BY state", False),
        ("SELECT count(*) AS n FROM queue.job HAVING count(*) > 1", False),
        ("SELECT id FROM queue.job WHERE id = sqlc.arg(job_id)", False),
        ("SELECT 1 AS n WHERE sqlc.arg(yes)::bool", False),
        ("SELECT unnest(sqlc.arg(many)::int[]) AS n", False),
        ("SELECT 1 AS n LIMIT sqlc.arg(most)", False),
    ],
)
async def test_whether_a_row_is_sure_to_come(
    conn: Owner, tmp_path: Path, sql: str, certain: bool
) -> None:
    assert (await analyse(conn, tmp_path, sql, "one")).always_one_row is certain


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
    conn: Owner, tmp_path: Path, sql: str, message: str
) -> None:
    with pytest.raises(QueryError, match=message):
        await analyse(conn, tmp_path, sql)


TASKS = """
-- name: AddJob :one
-- A new job.
INSERT INTO queue.job (organisation_id, options) VALUES (sqlc.arg(organisation_id), sqlc.arg(options))
RETURNING *;

-- name: GetJob :one
-- One job.
SELECT * FROM queue.job WHERE id = sqlc.arg(job_id);

-- name: AddTasks :execrows
-- New tasks of a job.
INSERT INTO queue.ready (job_id, url, lane)
SELECT sqlc.arg(job_id), url, lane
FROM unnest(sqlc.arg(urls)::text[], sqlc.narg(lanes)::text[]) AS t(url, lane)
ON CONFLICT DO NOTHING;

-- name: ClaimTasks :many
-- Lease the oldest tasks; a comment with a \\backslash.
WITH gone AS (
    DELETE FROM queue.ready WHERE id IN (
        SELECT id FROM queue.ready ORDER BY id LIMIT sqlc.arg(batch) FOR UPDATE SKIP LOCKED
    ) RETURNING id, job_id, url, lane
), taken AS (
    INSERT INTO queue.leased
    SELECT id, job_id, url, sqlc.arg(lease), now() + sqlc.arg(lease_time)::interval FROM gone
    RETURNING id
)
SELECT id AS task_id, url, lane FROM taken JOIN gone USING (id) ORDER BY id;

-- name: Lanes :many
-- All lanes.
SELECT lane FROM queue.ready ORDER BY id;

-- name: CountReady :one
-- How many wait.
SELECT count(*) AS n FROM queue.ready WHERE url ~ '\\d';

-- name: Forget :exec
-- Delete all.
DELETE FROM queue.leased;
"""


async def test_the_generated_module_does_what_it_says(conn: Owner, tmp_path: Path) -> None:
    topic = tmp_path / "queue" / "sql" / "tasks.sql"
    topic.parent.mkdir(parents=True)
    topic.write_text(TASKS)
    files = await generate.modules(tmp_path, conn)
    tasks = ModuleType("generated_tasks")
    sys.modules["generated_tasks"] = tasks
    exec(files[topic.with_suffix(".py")], vars(tasks))  # noqa: S102 (it is what we made)

    job = await tasks.add_job(conn, organisation_id=uuid4(), options={"a": [1, None]})
    assert type(job).__name__ == "JobRow"
    assert (job.options, job.state, job.done, job.finished_at) == (
        {"a": [1, None]},
        "queued",
        True,
        None,
    )
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
