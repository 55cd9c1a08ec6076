"""Every route of our own API, fed with whatever its schema allows, and with what it does not.

Two organisations share the server. Whatever the one sends, with the ids of the other where it can
name things: no answer is a server error, none breaks its own schema, and none shows or changes
anything of the other.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from pydantic import SecretStr
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

from tests.integration.api.native.admin.test_tenancy import bearer
from tests.support.http_api import Served
from tests.support.settings import change_settings
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.settings import Settings

MARK = "zq7-secret-of-others"
EXAMPLES = 40
# Each operation gets at least the fewest, and as many more as fit into its seconds.
FEWEST, SECONDS_EACH = 8, 0.8
# Theirs is a wire format with tests of its own, metrics are of the whole server by design, and a
# stream of events does not end.
FOREIGN = re.compile(
    r"^/(v0|v1|v2|metrics|docs|openapi|api/jobs/\{job_id\}/events"
    r"|api/knowledge-source/\{scope\}/events|upload/url)"
)
METHODS = ("get", "post", "put", "patch", "delete")

LIMITS = hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class Two:
    """A server, a key of one organisation, and what another one owns."""

    base: str
    headers: dict[str, str]
    other: OrganisationId
    theirs: dict[str, str]


@pytest.fixture
async def two(served: Served, server_settings: Settings, database: Database) -> AsyncIterator[Two]:
    settings = change_settings(server_settings, {"changedetection_secret": SecretStr("s")})
    async with database.system_tx() as conn:
        mine = await tenancy.create_organisation(conn, "mine")
        other = await tenancy.create_organisation(conn, MARK)
        key = await tenancy.issue_key(conn, mine.id, "k", tenancy.SCOPES)
        their_key = await tenancy.issue_key(conn, other.id, MARK, tenancy.SCOPES)
    async with served(settings) as client:
        assert client._base_url is not None
        theirs = await _fill(client, bearer(their_key.secret), database, other.id)
        yield Two(str(client._base_url), bearer(key.secret), other.id, theirs)


async def _fill(
    client: aiohttp.ClientSession,
    headers: dict[str, str],
    database: Database,
    organisation_id: OrganisationId,
) -> dict[str, str]:
    """Give the other organisation one of everything; return the ids by the names of parameters."""

    async def make(path: str, body: Any) -> Any:
        async with client.post(path, json=body, headers=headers) as answer:
            assert answer.status in (201, 202), await answer.text()
            return await answer.json()

    address = f"https://{MARK}.example.com/"
    site = await make("/api/sites", {"name": MARK, "base_url": address})
    job = await make(f"/api/sites/{MARK}/crawl", {"metadata": {"of": MARK}})
    member = await make("/api/members", {"email": f"{MARK}@example.com"})
    schedule = await make(
        "/api/schedules",
        {"name": MARK, "cron": "0 0 * * *", "template": {"kind": "crawl", "url": address}},
    )
    application = await make("/api/applications", {"name": MARK})
    form = aiohttp.FormData({"applicationId": application["id"]})
    form.add_field("files", MARK.encode(), filename=f"{MARK}.txt")
    async with client.post("/upload/documents", data=form, headers=headers) as answer:
        source = (await answer.json())["knowledgeSourceIds"][0]
    async with database.system_tx() as conn:
        rows = await conn.fetchrow(_PAGE, organisation_id, site["id"], MARK)
        task = await conn.fetchval(
            "SELECT min(id) FROM queue.task WHERE job_id = $1", job["job_id"]
        )
    return {
        "organisation_id": str(organisation_id),
        "site_id": site["id"],
        "site": site["id"],
        "application": application["id"],
        "source_id": source,
        "scope": application["id"],
        "reference": site["id"],
        "job_id": job["job_id"],
        "job": job["job_id"],
        "task_id": str(task),
        "member_id": member["id"],
        "schedule_id": schedule["id"],
        "page_id": str(rows["page_id"]),
        "duplicate_of": str(rows["page_id"]),
        "change_id": str(rows["change_id"]),
        "group_id": str(rows["group_id"]),
    }


_PAGE = """
    WITH host AS (
        INSERT INTO frontier.host (organisation_id, name) VALUES ($1, $3) RETURNING id
    ),
    url AS (
        INSERT INTO frontier.url (organisation_id, host_id, secure, path, hash)
        SELECT $1, id, true, '/' || $3, sha256(convert_to($3, 'UTF8')) FROM host RETURNING id
    ),
    page AS (
        INSERT INTO store.page (id, organisation_id, site_id, url_id, first_seen_at, last_seen_at)
        SELECT gen_random_uuid(), $1, $2, id, now(), now() FROM url RETURNING id, url_id
    ),
    version AS (
        INSERT INTO store.version (
            organisation_id, page_id, number, visit_id, fetched_at, content_hash,
            extractor_version, title, text, markdown
        )
        SELECT $1, id, 1, 1, now(), sha256('x'), 1, $3, $3, $3 FROM page RETURNING id
    ),
    content AS (
        INSERT INTO store.content_hash (
            organisation_id, site_id, content_hash, first_seen_page_id, first_version_id, title,
            created_at, last_seen_at
        )
        SELECT $1, $2, sha256('x'), page.id, version.id, $3, now(), now() FROM page, version
        RETURNING id
    ),
    likeness AS (
        INSERT INTO store.likeness (
            page_id, organisation_id, site_id, version_id, content_id, group_id, similarity
        )
        SELECT page.id, $1, $2, version.id, content.id, content.id, 100
        FROM page, version, content
    ),
    change AS (
        INSERT INTO store.change (
            organisation_id, site_id, page_id, url_id, status, source, detected_at, metadata
        )
        SELECT $1, $2, id, url_id, 'new', 'visit', now(), jsonb_build_object('of', $3::text)
        FROM page RETURNING id
    )
    SELECT page.id AS page_id, change.id AS change_id, content.id AS group_id
    FROM page, change, content
"""


async def _owned(database: Database, organisation_id: OrganisationId) -> dict[str, list[str]]:
    """Return all rows that an organisation owns, table by table."""
    async with database.system_tx() as conn:
        tables = await conn.fetch(
            "SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_attribute a"
            " JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE a.attname = 'organisation_id' AND NOT a.attisdropped"
            " AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
            " AND n.nspname NOT IN ('pg_catalog', 'information_schema')"
        )
        owned = {}
        for table in tables:
            rows = await conn.fetch(
                f"SELECT t::text AS row FROM {table['name']} t WHERE organisation_id = $1",
                organisation_id,
            )
            # The only thing that others may change is when a key was last used: by its owner.
            owned[table["name"]] = sorted(row["row"] for row in rows)
        return owned


def _fuzz(two: Two, document: dict[str, Any]) -> int:
    """Send every operation what its schema allows; return how many operations there are."""
    count = 0
    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = result.ok()
        if not FOREIGN.match(operation.path):
            count += 1
            _send(two, operation)
    return count


def _send(two: Two, operation: Any) -> None:
    until, sent = time.monotonic() + SECONDS_EACH, 0

    @LIMITS
    @hypothesis.given(case=operation.as_strategy())
    def send(case: Any) -> None:
        nonlocal sent
        sent += 1
        if sent > FEWEST and time.monotonic() > until:
            return
        response = case.call(base_url=two.base, headers=two.headers, timeout=60)
        case.validate_response(response, checks=[not_a_server_error, response_schema_conformance])
        assert MARK not in response.text, case.formatted_path

    send()


@pytest.mark.timeout(600)
async def test_no_input_breaks_the_api_or_shows_what_others_own(
    two: Two, database: Database
) -> None:
    before = await _owned(database, two.other)
    assert sum(map(len, before.values())) > 10
    async with aiohttp.ClientSession(two.base) as client, client.get("/openapi.json") as answer:
        document = await answer.json()
    assert await asyncio.to_thread(_fuzz, two, document) > 40
    assert await _owned(database, two.other) == before


async def test_the_ids_of_others_lead_nowhere(two: Two, database: Database) -> None:
    before = await _owned(database, two.other)
    tried = 0
    async with aiohttp.ClientSession(two.base, headers=two.headers) as client:
        async with client.get("/openapi.json") as answer:
            document: dict[str, Any] = await answer.json()
        for path, operations in document["paths"].items():
            names = re.findall(r"{(\w+)}", path)
            if not names or FOREIGN.match(path):
                continue
            url = re.sub(r"{(\w+)}", lambda found: two.theirs.get(found[1], "1"), path)
            query = {name: two.theirs[name] for name in ("site", "site_id", "job_id")}
            for method in METHODS:
                if method not in operations:
                    continue
                body = _body_for(two, operations[method], document["components"]["schemas"])
                async with client.request(method, url, params=query, json=body) as answer:
                    text = await answer.text()
                    tried += 1
                    assert answer.status in (400, 403, 404, 409), (method, url, text)
                    assert MARK not in text, (method, url)
    assert tried > 30
    assert await _owned(database, two.other) == before


def _body_for(two: Two, operation: Any, schemas: dict[str, Any]) -> Any:
    """Return a body that would do if the thing were ours, with the other's ids where it names any."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    told = repr(content)
    fields: dict[str, Any] = {}
    for name, schema in schemas.items():
        if f"/{name}'" in told:
            fields |= schema.get("properties", {})
    values = {"name": "stolen", "number": 1, "duplicate_of": two.theirs["page_id"]}
    return {name: value for name, value in values.items() if name in fields}
