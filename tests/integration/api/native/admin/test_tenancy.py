"""Organisations, members and keys over HTTP, with everything that a stranger may try."""

from uuid import UUID, uuid4

import aiohttp
import pytest
from pydantic import SecretStr

from tests.support.http_api import Served
from tests.support.settings import change_settings
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.model import OrganisationId
from trapline.settings import Settings

PROBLEM = "application/problem+json"


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def key_of(database: Database, name: str, *scopes: str) -> str:
    async with database.system_tx() as conn:
        organisation = await tenancy.create_organisation(conn, name)
        return (await tenancy.issue_key(conn, organisation.id, "k", scopes or ("read",))).secret


async def test_health_has_the_documented_shape(api: aiohttp.ClientSession) -> None:
    async with api.get("/health") as answer:
        body = await answer.json()
    assert answer.status == 200
    assert body.keys() == {"status", "timestamp", "checks"}
    assert body["status"] == "healthy"
    assert body["checks"] == {"database": "connected", "disk": "writable"}
    assert body["timestamp"].endswith("Z")


async def test_health_names_redis_only_when_there_is_one(
    served: Served, server_settings: Settings
) -> None:
    away = change_settings(server_settings, {"redis_url": SecretStr("redis://127.0.0.1:1/0")})
    async with served(away) as client, client.get("/health") as answer:
        body = await answer.json()
    assert answer.status == 503
    assert body["status"] == "unhealthy"
    assert body["checks"] == {
        "database": "connected",
        "disk": "writable",
        "redis": "disconnected",
    }


async def test_metrics_count_requests_by_route(api: aiohttp.ClientSession) -> None:
    await (await api.get(f"/api/organisations/{uuid4()}")).read()
    async with api.get("/metrics") as answer:
        text = await answer.text()
    assert 'route="/api/organisations/{reference}",status="404"' in text


async def test_every_answer_has_a_request_id(api: aiohttp.ClientSession) -> None:
    mine = str(uuid4())
    async with api.get("/health", headers={"X-Request-Id": mine}) as answer:
        assert answer.headers["X-Request-Id"] == mine
    async with api.get("/health", headers={"X-Request-Id": "not a uuid"}) as answer:
        UUID(answer.headers["X-Request-Id"])


async def test_an_open_server_needs_no_key(api: aiohttp.ClientSession) -> None:
    async with api.get("/api/organisations") as answer:
        assert [row["name"] for row in await answer.json()] == ["default"]


async def test_an_open_server_turns_web_pages_away(api: aiohttp.ClientSession) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        async with api.get("/api/organisations", headers=headers) as answer:
            assert answer.status == 403
            assert answer.content_type == PROBLEM


async def test_once_a_key_exists_it_is_needed(
    api: aiohttp.ClientSession, database: Database
) -> None:
    secret = await key_of(database, "A")
    for headers in ({}, bearer("trp_wrong"), bearer(""), {"Authorization": f"Basic {secret}"}):
        async with api.get("/api/organisations", headers=headers) as answer:
            assert answer.status == 401, headers
    async with api.get("/api/organisations", headers=bearer(secret)) as answer:
        assert [row["name"] for row in await answer.json()] == ["A"]


async def test_a_revoked_key_is_refused_at_once(
    api: aiohttp.ClientSession, database: Database
) -> None:
    boss = await key_of(database, "A", "read", "write", "admin")
    async with api.post("/api/keys", json={"name": "temp"}, headers=bearer(boss)) as answer:
        assert answer.status == 201
        issued = await answer.json()
    async with api.get("/api/members", headers=bearer(issued["key"])) as answer:
        assert answer.status == 200
    for _ in range(2):
        async with api.delete(f"/api/keys/{issued['prefix']}", headers=bearer(boss)) as answer:
            assert answer.status == 200
    async with api.get("/api/members", headers=bearer(issued["key"])) as answer:
        assert answer.status == 401
    async with api.get("/api/keys", headers=bearer(boss)) as answer:
        listed = {row["name"]: row for row in await answer.json()}
    assert listed["temp"]["revoked_at"] is not None
    assert listed["temp"]["last_used_at"] is not None
    assert "hash" not in listed["temp"]
    assert "key" not in listed["temp"]


async def test_scopes_are_kept(api: aiohttp.ClientSession, database: Database) -> None:
    reader = await key_of(database, "A", "read")
    async with api.get("/api/members", headers=bearer(reader)) as answer:
        assert answer.status == 200
    for path in ("/api/members", "/api/keys"):
        async with api.post(path, json={}, headers=bearer(reader)) as answer:
            assert answer.status in {400, 403}
    async with api.post(
        "/api/members", json={"email": "a@b.example"}, headers=bearer(reader)
    ) as answer:
        assert answer.status == 403
    async with api.get("/api/keys", headers=bearer(reader)) as answer:
        assert answer.status == 403


async def test_organisations_do_not_see_each_other(
    api: aiohttp.ClientSession, database: Database
) -> None:
    a = await key_of(database, "A", "read", "write", "admin")
    b = await key_of(database, "B", "read", "write", "admin")
    async with api.post(
        "/api/members", json={"email": "ada@a.example"}, headers=bearer(a)
    ) as answer:
        ada = await answer.json()
    async with api.get("/api/members", headers=bearer(b)) as answer:
        assert await answer.json() == []
    async with api.delete(f"/api/members/{ada['id']}", headers=bearer(b)) as answer:
        assert answer.status == 404
    for reference in ("A", ada["organisation_id"]):
        async with api.get(f"/api/organisations/{reference}", headers=bearer(b)) as answer:
            assert answer.status == 404
    async with api.patch(
        f"/api/organisations/{ada['organisation_id']}", json={"name": "X"}, headers=bearer(b)
    ) as answer:
        assert answer.status == 404


async def test_a_key_cannot_do_what_the_administrator_does(
    api: aiohttp.ClientSession, database: Database
) -> None:
    boss = await key_of(database, "A", "read", "write", "admin")
    async with api.post("/api/organisations", json={"name": "C"}, headers=bearer(boss)) as answer:
        assert answer.status == 403
    async with api.post("/admin/reset-db", headers=bearer(boss)) as answer:
        assert answer.status == 404


async def test_the_administrator_manages_organisations(
    served: Served, server_settings: Settings, database: Database
) -> None:
    await key_of(database, "A")
    settings = change_settings(server_settings, {"admin_key": SecretStr("root-key")})
    async with served(settings) as client:
        client.headers.update(bearer("root-key"))
        body = {"name": "Acme", "owner": "team-7", "max_concurrency": 5}
        async with client.post("/api/organisations", json=body) as answer:
            assert answer.status == 201
            acme = await answer.json()
        assert acme["id"] == str(tenancy.organisation_id_of("team-7"))
        assert acme["foreign_id"] == "team-7"
        async with client.post("/api/organisations", json=body) as answer:
            assert answer.status == 409
        limits = {"max_concurrency": None, "max_pages_per_day": 10}
        async with client.put(f"/api/organisations/{acme['id']}/limits", json=limits) as answer:
            assert (await answer.json())["max_pages_per_day"] == 10
        async with client.patch(f"/api/organisations/{acme['id']}", json={"name": "a"}) as answer:
            assert answer.status == 409
        async with client.get("/api/organisations/team-7") as answer:
            assert (await answer.json())["name"] == "Acme"
        async with client.delete(f"/api/organisations/{acme['id']}") as answer:
            assert answer.status == 204
        async with client.get("/api/organisations/team-7") as answer:
            assert answer.status == 404


async def test_the_admin_endpoint_resets_the_database(
    served: Served, server_settings: Settings, database: Database
) -> None:
    await key_of(database, "A")
    settings = change_settings(server_settings, {"admin_key": SecretStr("root-key")})
    async with served(settings) as client:
        async with client.post("/admin/reset-db", headers=bearer("wrong")) as answer:
            assert answer.status == 401
        async with client.post("/admin/reset-db", headers=bearer("root-key")) as answer:
            assert answer.status == 200
        async with client.get("/api/organisations", headers=bearer("root-key")) as answer:
            assert [row["name"] for row in await answer.json()] == ["default"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/organisations", {}),
        ("/api/organisations", {"name": ""}),
        ("/api/organisations", {"name": "x" * 201}),
        ("/api/organisations", {"name": "x", "max_concurrency": 0}),
        ("/api/organisations", {"name": "x", "max_concurrency": 2**40}),
        ("/api/organisations", {"name": "x", "surprise": 1}),
        ("/api/organisations", {"name": "a\x00b"}),
        ("/api/members", {"email": "nobody"}),
        ("/api/members", {"email": "@@@"}),
        ("/api/keys", {"name": "k", "scopes": []}),
        ("/api/keys", {"name": "k", "scopes": ["root"]}),
        ("/api/keys", {"name": " "}),
    ],
)
async def test_bad_input_is_a_problem_document(
    api: aiohttp.ClientSession, path: str, body: dict[str, object]
) -> None:
    async with api.post(path, json=body) as answer:
        problem = await answer.json(content_type=PROBLEM)
    assert answer.status == 400
    assert problem["status"] == 400
    assert problem["detail"]


async def test_malformed_json_is_a_problem_document(api: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "application/json"}
    async with api.post("/api/keys", data=b'{"name": ', headers=headers) as answer:
        assert answer.status == 400
        assert answer.content_type == PROBLEM


async def test_a_member_is_there_once(
    api: aiohttp.ClientSession, organisation_id: OrganisationId
) -> None:
    for expected in (201, 409):
        async with api.post("/api/members", json={"email": "Ada@example.com"}) as answer:
            assert answer.status == expected
    async with api.get("/api/members") as answer:
        (ada,) = await answer.json()
    assert ada["organisation_id"] == str(organisation_id)
    for expected in (204, 404):
        async with api.delete(f"/api/members/{ada['id']}") as answer:
            assert answer.status == expected
