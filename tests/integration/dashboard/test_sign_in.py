"""Who may see and change: sessions, read-only keys, origins, share links, the audit trail."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from tests.support.http_api import client_of
from trapline.api import application
from trapline.app.dispatcher import Dispatcher
from trapline.dashboard import application as dashboard
from trapline.db import audit_trail, tenancy
from trapline.db.pool import Database
from trapline.queue import jobs
from trapline.queue.jobs import NewJob
from trapline.settings import Settings

ADMIN_KEY = "the-administrator"


def _served(database: Database, settings: Settings) -> Dispatcher:
    api = application.build(database, settings)
    return Dispatcher.of(api, dashboard.build(api), settings.server.path_prefix)


@pytest.fixture
async def browser(
    database: Database, server_settings: Settings
) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that keeps cookies, of a server with an administrator's key."""
    async with database.system_tx() as conn:
        await tenancy.ensure_default(conn)
    server = server_settings.server.model_copy(update={"admin_key": SecretStr(ADMIN_KEY)})
    settings = replace(server_settings, server=server)
    async with client_of(_served(database, settings)) as client:
        client.cookie_jar._unsafe = True  # type: ignore[attr-defined]
        yield client


async def key_of(database: Database, *scopes: str) -> str:
    async with database.system_tx() as conn:
        owner = await tenancy.ensure_default(conn)
        return (await tenancy.issue_key(conn, owner, "-".join(scopes), scopes)).secret


def own(client: aiohttp.ClientSession) -> dict[str, str]:
    """The headers of a form on a page of ours."""
    return {"Origin": str(client._base_url).rstrip("/")}


async def post(
    client: aiohttp.ClientSession, path: str, data: dict[str, Any], **headers: str
) -> tuple[int, str]:
    given = own(client) | {name.replace("_", "-"): value for name, value in headers.items()}
    async with client.post(path, data=data, headers=given, allow_redirects=False) as response:
        return response.status, response.headers.get("Location", await response.text())


async def status(client: aiohttp.ClientSession, path: str) -> int:
    async with client.get(path, allow_redirects=False) as response:
        return response.status


async def sign_in(client: aiohttp.ClientSession, key: str) -> None:
    assert (await post(client, "/sign-in", {"key": key}))[0] == 303


async def new_job(database: Database) -> str:
    async with database.system_tx() as conn:
        owner = await tenancy.ensure_default(conn)
        return str((await jobs.create(conn, NewJob("crawl", owner))).id)


async def test_an_open_server_needs_no_sign_in_but_refuses_other_hosts(
    browser: aiohttp.ClientSession,
) -> None:
    assert await status(browser, "/jobs") == 200
    async with browser.get("/jobs", headers={"Host": "evil.example"}) as response:
        assert response.status == 403


async def test_a_server_with_keys_sends_browsers_to_the_sign_in_page(
    browser: aiohttp.ClientSession, database: Database
) -> None:
    await key_of(database, "read")
    async with browser.get("/jobs?status=failed", allow_redirects=False) as response:
        assert response.status == 303
        assert response.headers["Location"] == "/sign-in?next=/jobs%3Fstatus%3Dfailed"
    async with browser.get("/live", headers={"Accept": "text/event-stream"}) as response:
        assert response.status == 401


@pytest.mark.parametrize("key", ["", "trp_wrong", "x" * 400, "\x00", "trp_" + "0" * 64])
async def test_a_wrong_key_starts_no_session(
    browser: aiohttp.ClientSession, database: Database, key: str
) -> None:
    await key_of(database, "read")
    answer = await post(browser, "/sign-in", {"key": key})
    assert answer[0] == 401
    assert await status(browser, "/") == 303


async def test_the_cookie_is_protected_and_secure_behind_tls(
    browser: aiohttp.ClientSession, database: Database
) -> None:
    key = await key_of(database, "read")
    for headers, secure in (({}, False), ({"X-Forwarded-Proto": "https"}, True)):
        async with browser.post(
            "/sign-in", data={"key": key}, headers=own(browser) | headers, allow_redirects=False
        ) as response:
            cookie = response.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert ("Secure" in cookie) == secure


async def test_a_forged_or_revoked_session_sees_nothing(
    browser: aiohttp.ClientSession, database: Database
) -> None:
    key = await key_of(database, "read", "write", "admin")
    await sign_in(browser, key)
    assert await status(browser, "/jobs") == 200
    async with database.system_tx() as conn:
        await conn.execute("UPDATE tenancy.session SET revoked_at = now()")
    assert await status(browser, "/jobs") == 303
    browser.cookie_jar.update_cookies({"trapline_session": "forged"})
    assert await status(browser, "/jobs") == 303


async def test_a_session_ends_with_its_key(
    browser: aiohttp.ClientSession, database: Database
) -> None:
    await key_of(database, "read")
    await sign_in(browser, await key_of(database, "read", "write"))
    assert await status(browser, "/") == 200
    async with database.system_tx() as conn:
        await conn.execute(
            "UPDATE tenancy.api_key SET revoked_at = now() WHERE name = 'read-write'"
        )
    assert await status(browser, "/") == 303


async def test_an_old_token_is_replaced_and_counts_a_minute_more(
    browser: aiohttp.ClientSession, database: Database
) -> None:
    await sign_in(browser, await key_of(database, "read"))
    old = next(c.value for c in browser.cookie_jar if c.key == "trapline_session")
    async with database.system_tx() as conn:
        await conn.execute("UPDATE tenancy.session SET rotated_at = now() - interval '2 hours'")
    assert await status(browser, "/") == 200
    new = next(c.value for c in browser.cookie_jar if c.key == "trapline_session")
    assert new != old
    assert await status(browser, "/") == 200
    browser.cookie_jar.update_cookies({"trapline_session": old}, browser._base_url)
    assert await status(browser, "/") == 200
    async with database.system_tx() as conn:
        await conn.execute("UPDATE tenancy.session SET rotated_at = now() - interval '2 minutes'")
    assert await status(browser, "/") == 303


async def test_a_read_only_key_sees_and_cannot_change(
    browser: aiohttp.ClientSession, database: Database
) -> None:
    job = await new_job(database)
    await sign_in(browser, await key_of(database, "read"))
    async with browser.get(f"/jobs/{job}") as response:
        text = await response.text()
    assert response.status == 200
    assert "read-only" in text
    assert f"/jobs/{job}/cancel" not in text
    for path, data in (
        (f"/jobs/{job}/cancel", {}),
        ("/jobs/bulk", {"action": "cancel"}),
        ("/jobs/new", {"url": "http://a.test/"}),
        ("/playground", {"verb": "scrape", "body": "{}"}),
        ("/organisation/keys", {"name": "x"}),
        ("/dead-letters", {"action": "resolve"}),
        ("/sources/upload", {}),
        ("/share", {"path": f"/jobs/{job}/report", "title": "x"}),
    ):
        assert (await post(browser, path, data))[0] == 403, path
    for path in ("/audit-trail", "/database", "/settings"):
        assert await status(browser, path) == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_change_from_elsewhere_is_refused(
    browser: aiohttp.ClientSession, database: Database, headers: dict[str, str]
) -> None:
    job = await new_job(database)
    await sign_in(browser, await key_of(database, "read", "write"))
    async with browser.post(f"/jobs/{job}/cancel", headers=headers) as response:
        assert response.status == 403
    async with database.system_tx() as conn:
        assert await conn.fetchval("SELECT status FROM queue.job") == "pending"


async def test_changes_are_in_the_audit_trail_with_who_did_them(
    browser: aiohttp.ClientSession, database: Database
) -> None:
    job = await new_job(database)
    key = await key_of(database, "read", "write", "admin")
    await sign_in(browser, key)
    assert (await post(browser, f"/jobs/{job}/pause", {}))[0] == 303
    assert (await post(browser, f"/jobs/{job}/pause", {}))[0] == 409
    bearer = {"Authorization": f"Bearer {key}"}
    async with browser.post(f"/api/jobs/{job}/cancel", headers=bearer) as response:
        assert response.status == 200
    async with browser.get("/api/audit-trail", headers=bearer) as response:
        entries = (await response.json())["items"]
    assert [(e["channel"], e["action"], e["target"], e["actor"]) for e in entries] == [
        ("api", "cancel_job", job, "read-write-admin"),
        ("dashboard", "change_job", job, "read-write-admin"),
        ("dashboard", "sign_in", None, "read-write-admin"),
    ]
    async with browser.get("/audit-trail") as response:
        assert job in await response.text()


async def test_nobody_rewrites_the_audit_trail(
    browser: aiohttp.ClientSession, database: Database
) -> None:
    async with database.system_tx() as conn:
        owner = await tenancy.ensure_default(conn)
        principal = tenancy.Principal.administrator_of(owner)
        await audit_trail.record(conn, principal, "api", "test")
    for statement in (
        "DELETE FROM tenancy.audit_entry",
        "UPDATE tenancy.audit_entry SET actor = 'x'",
    ):
        async with database.tenant_tx(owner) as conn:
            with pytest.raises(Exception, match="permission denied"):
                await conn.execute(statement)


async def test_a_share_link_shows_one_view_until_it_ends(
    browser: aiohttp.ClientSession, database: Database
) -> None:
    job = await new_job(database)
    await sign_in(browser, await key_of(database, "read", "write", "admin"))
    data = {"path": f"/jobs/{job}/report", "title": "Report", "days": "1"}
    _, text = await post(browser, "/share", data)
    link = text.partition("/share/")[2].partition("<")[0]
    for forbidden in ("/jobs", f"/jobs/{job}", "/pages/x/diff", "//evil.example", "/settings"):
        assert (await post(browser, "/share", data | {"path": forbidden}))[0] == 400
    browser.cookie_jar.clear()
    async with browser.get(f"/share/{link}") as response:
        assert response.status == 200
        shown = await response.text()
    assert '<nav aria-label="Main">' not in shown
    assert await status(browser, f"/jobs/{job}/report") == 303
    assert await status(browser, f"/share/{link}x") == 404
    async with database.system_tx() as conn:
        await conn.execute("UPDATE tenancy.share_link SET expires_at = $1", datetime.now(UTC))
    assert await status(browser, f"/share/{link}") == 404
    async with database.system_tx() as conn:
        later = datetime.now(UTC) + timedelta(days=1)
        await conn.execute(
            "UPDATE tenancy.share_link SET expires_at = $1, revoked_at = now()", later
        )
    assert await status(browser, f"/share/{link}") == 404


async def test_the_administrator_signs_in_and_sees_the_server(
    browser: aiohttp.ClientSession, database: Database
) -> None:
    await key_of(database, "read")
    await sign_in(browser, ADMIN_KEY)
    for path in ("/database", "/settings", "/agents", "/organisation"):
        assert await status(browser, path) == 200
    async with browser.get("/settings") as response:
        assert ADMIN_KEY not in await response.text()
    assert (await post(browser, "/sign-out", {}))[0] == 303
    assert await status(browser, "/") == 303


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"]
)
async def test_signing_in_leads_to_no_other_site(
    browser: aiohttp.ClientSession, database: Database, target: str
) -> None:
    key = await key_of(database, "read")
    assert await post(browser, "/sign-in", {"key": key, "next": target}) == (303, "/")


async def test_forged_ids_and_cursors_get_a_page_that_says_so(
    browser: aiohttp.ClientSession,
) -> None:
    for path, expected in {
        "/jobs?cursor=forged": 400,
        "/jobs?status=exploded": 400,
        "/jobs/not-an-id": 400,
        "/jobs/00000000-0000-0000-0000-000000000000": 404,
        "/pages/00000000-0000-0000-0000-000000000000": 404,
        "/tasks/99999999999": 404,
        "/tasks/99999999999999999999999": 400,
        "/hosts/nowhere.test": 404,
        "/pages?url=%00": 400,
        "/search?q=x&cursor=zzz": 400,
        "/changes/1": 404,
        "/jobs?q=http%3A%2F%2Fnever.test%2F": 200,
        "/jobs?status=&kind=": 200,
        "/assets/none.css": 404,
    }.items():
        async with browser.get(path) as response:
            assert (path, response.status) == (path, expected)
            assert "<html" in await response.text()


async def test_every_page_forbids_inline_script_and_strangers(
    browser: aiohttp.ClientSession,
) -> None:
    async with browser.get("/") as response:
        policy = response.headers["Content-Security-Policy"]
        text = await response.text()
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert " style=" not in text
    assert "<script>" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")


async def test_it_works_under_a_path_prefix(database: Database, server_settings: Settings) -> None:
    async with database.system_tx() as conn:
        await tenancy.ensure_default(conn)
    server = server_settings.server.model_copy(update={"path_prefix": "/tools/trapline"})
    async with client_of(_served(database, replace(server_settings, server=server))) as client:
        for path in ("/tools/trapline/jobs", "/jobs", "/tools/trapline/health", "/tools/trapline"):
            assert await status(client, path) == 200
        async with client.get("/tools/trapline/jobs") as response:
            text = await response.text()
    assert 'href="/tools/trapline/pages"' in text
    assert 'href="/pages"' not in text
    assert 'src="/tools/trapline/assets/dashboard.' in text
