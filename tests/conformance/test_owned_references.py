"""No id of another organisation is accepted: not by an endpoint, and not by the database itself."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import asyncpg
import pytest

from tests.integration.api.native.admin.test_tenancy import bearer
from tests.support.ingest_api import answering as serving
from trapline.db import schemas, tenancy
from trapline.db.connection import OwnConnection
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.settings import Settings

URL = "http://docs.example/"
ID = re.compile(r"(_id|_ids|Id|Ids)$")
# Ids of other systems: they refer to no row of ours.
NEUTRAL = {
    ("post", "/api/organisations", "foreign_id"),
    ("post", "/api/webhooks/changedetection", "watch_id"),
}
# References to tables with many rows: their children are written in the same statement.
LARGE = {
    ("store", "version"),
    ("store", "likeness"),
    ("store", "fingerprint"),
    ("store", "duplicate_group"),
    ("knowledge", "chunk"),
    ("knowledge", "vector"),
    ("knowledge", "posting"),
    ("tenancy", "api_key"),
    ("tenancy", "session"),
}
FOREIGN_KEYS = """
SELECT c.conname, n.nspname, t.relname,
       ARRAY(SELECT a.attname::text FROM unnest(c.conkey) k
             JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k) AS columns
FROM pg_constraint c
JOIN pg_class t ON t.oid = c.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE c.contype = 'f' AND n.nspname = ANY ($1) AND c.conparentid = 0
  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.conrelid AND a.attname = 'organisation_id')
  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.confrelid AND a.attname = 'organisation_id')
"""


@dataclass(frozen=True)
class Theirs:
    """What another organisation owns."""

    organisation: OrganisationId
    site: str
    application: str
    source: str
    member: str


@pytest.fixture
async def theirs(database: Database) -> Theirs:
    async with database.system_tx() as conn:
        other = (await tenancy.create_organisation(conn, "other")).id
        member = (await tenancy.add_member(conn, other, "m@example.com")).id
        site = await conn.fetchval(
            "INSERT INTO store.site (organisation_id, name, base_url) VALUES ($1, 's', $2)"
            " RETURNING id",
            other,
            URL,
        )
        application = await conn.fetchval(
            "INSERT INTO knowledge.application (organisation_id, name) VALUES ($1, 'a') RETURNING id",
            other,
        )
        source = await conn.fetchval(
            "INSERT INTO knowledge.source (id, organisation_id, kind, name, uri)"
            " VALUES ($1, $2, 'url', 'k', $3) RETURNING id",
            uuid4(),
            other,
            URL,
        )
    return Theirs(other, str(site), str(application), str(source), str(member))


@pytest.fixture
async def ours(
    database: Database, server_settings: Settings
) -> AsyncIterator[aiohttp.ClientSession]:
    async with database.system_tx() as conn:
        own = (await tenancy.create_organisation(conn, "ours")).id
        key = await tenancy.issue_key(conn, own, "key", ("read", "write", "admin"))
    async with serving(database, server_settings) as client:
        client.headers.update(bearer(key.secret))
        yield client


def requests_with(theirs: Theirs) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every request whose body can name something of an organisation."""
    for kind in ("crawl", "scrape", "map"):
        yield "post", "/api/jobs", {"kind": kind, "url": URL, "site_id": theirs.site}
        for name, value in (("site_id", theirs.site), ("source_id", theirs.source)):
            yield "post", "/api/jobs", {"kind": kind, "url": URL, "options": {name: value}}
            template = {"kind": kind, "url": URL, "options": {name: value}}
            yield "post", "/api/schedules", _schedule(template=template)
    batch = {"kind": "batch_scrape", "urls": [URL]}
    yield "post", "/api/jobs", batch | {"options": {"site_id": theirs.site}}
    yield "post", "/api/jobs", batch | {"site_id": theirs.site}
    yield "post", "/api/schedules", _schedule(site_id=theirs.site)
    yield "post", "/api/schedules", _schedule(application_id=theirs.application)
    source = {"kind": "source", "source_id": theirs.source}
    yield "post", "/api/schedules", _schedule(template=source)
    for name, value in (("applicationId", theirs.application), ("userId", theirs.member)):
        yield "post", "/upload/url", {"url": URL, "crawlLinks": True, name: value}


def _schedule(**more: Any) -> dict[str, Any]:
    template = {"kind": "crawl", "url": URL}
    return {"name": "n", "kind": "recurring", "cron": "30 2 * * *", "template": template} | more


async def test_an_id_of_another_organisation_is_not_found(
    ours: aiohttp.ClientSession, theirs: Theirs, database: Database
) -> None:
    for method, path, body in requests_with(theirs):
        async with ours.request(method, path, json=body) as answer:
            assert answer.status == 404, (path, body, answer.status, await answer.text())
    async with database.system_tx() as conn:
        for table in ("queue.job", "queue.schedule"):
            assert await conn.fetchval(f"SELECT count(*) FROM {table}") == 0


async def test_a_schedule_cannot_be_changed_to_another_organisations_site(
    ours: aiohttp.ClientSession, theirs: Theirs
) -> None:
    async with ours.post("/api/schedules", json=_schedule()) as answer:
        assert answer.status == 201, await answer.text()
        schedule_id = (await answer.json())["id"]
    for more in ({"site_id": theirs.site}, {"application_id": theirs.application}):
        async with ours.put(f"/api/schedules/{schedule_id}", json=_schedule(**more)) as answer:
            assert answer.status == 404


async def test_a_user_of_another_organisation_uploads_nothing(
    ours: aiohttp.ClientSession, theirs: Theirs
) -> None:
    form = aiohttp.FormData()
    form.add_field("userId", theirs.member)
    form.add_field("files", b"A text about herons.", filename="a.txt")
    async with ours.post("/upload/documents", data=form) as answer:
        assert answer.status == 404, await answer.text()


async def test_every_body_field_with_an_id_is_tried(
    ours: aiohttp.ClientSession, theirs: Theirs
) -> None:
    """A new field that holds an id must be added to `requests_with`."""
    tried = {
        (method, path, name)
        for method, path, body in requests_with(theirs)
        for name in body
        if ID.search(name)
    }
    tried |= {("post", "/upload/documents", name) for name in ("applicationId", "userId")}
    tried |= {("put", "/api/schedules/{schedule_id}", n) for n in ("site_id", "application_id")}
    async with ours.get("/openapi.json") as answer:
        described = await answer.json()
    fields = {
        (method, path, name)
        for path, operations in described["paths"].items()
        if path.startswith(("/api/", "/upload/"))
        for method, operation in operations.items()
        for name in _body_fields(described, operation)
        if ID.search(name)
    }
    assert fields - NEUTRAL <= tried, fields - NEUTRAL - tried
    assert fields


def _body_fields(described: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield from _fields(described, content["schema"])


def _fields(described: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for one in schema.get("anyOf", []):
        yield from _fields(described, one)
    yield from schema.get("properties", {})


async def test_foreign_keys_carry_the_organisation(dsn: str) -> None:
    owner: OwnConnection = await asyncpg.connect(dsn)
    rows = await owner.fetch(FOREIGN_KEYS, list(schemas.SCHEMAS))
    await owner.close()
    without = {
        (row["nspname"], row["relname"]) for row in rows if "organisation_id" not in row["columns"]
    }
    assert without == LARGE


@pytest.mark.parametrize(
    "statement",
    [
        """INSERT INTO knowledge.source (id, organisation_id, kind, name, uri, site_id)
        SELECT gen_random_uuid(), $1, 'site', 'x', 'x', s.id FROM store.site s
        WHERE s.organisation_id <> $1""",
        """INSERT INTO knowledge.entry (
            organisation_id, source_id, generation, uri, path, language, content_hash, dated_at
        ) SELECT $1, s.id, 0, 'u', '', 'en', sha256('x'), now()
        FROM knowledge.source s WHERE s.organisation_id <> $1""",
        """INSERT INTO store.site_config (site_id, number, organisation_id, config)
        SELECT s.id, 9, $1, '{}' FROM store.site s WHERE s.organisation_id <> $1""",
    ],
)
async def test_the_database_refuses_a_reference_to_another_organisation(
    database: Database, theirs: Theirs, statement: str
) -> None:
    async with database.system_tx() as conn:
        own: UUID = (await tenancy.create_organisation(conn, "ours")).id
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        async with database.system_tx() as conn:
            await conn.execute(statement, own)


async def test_streams_end_when_their_key_is_revoked(
    ours: aiohttp.ClientSession, database: Database
) -> None:
    async with ours.post("/api/applications", json={"name": "docs"}) as answer:
        application = (await answer.json())["id"]
    path = f"/api/knowledge-source/{application}/events"
    async with ours.ws_connect(path) as socket:
        await socket.receive_json()
        async with database.system_tx() as conn:
            await conn.execute("UPDATE tenancy.api_key SET revoked_at = now()")
            await conn.execute(
                "INSERT INTO knowledge.tally (organisation_id, scope, minute, total)"
                " SELECT organisation_id, id, date_trunc('minute', now()), 3 FROM knowledge.application"
            )
        async with asyncio.timeout(60):
            message = await socket.receive()
            while message.type is aiohttp.WSMsgType.TEXT:
                message = await socket.receive()
        assert socket.close_code == 3000
    async with ours.get("/api/jobs") as answer:
        assert answer.status == 401, "revoking the last key must not open the server"


async def test_a_key_that_may_only_write_reads_no_crawl(
    ours: aiohttp.ClientSession, database: Database
) -> None:
    async with ours.post("/api/jobs", json={"kind": "crawl", "url": URL}) as answer:
        job_id = (await answer.json())["id"]
    async with database.system_tx() as conn:
        await conn.execute("UPDATE tenancy.api_key SET scopes = '{write}'")
    async with ours.ws_connect(f"/v2/crawl/{job_id}") as socket:
        message = await socket.receive()
        assert message.type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 3003
