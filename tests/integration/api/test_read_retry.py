"""Requests whose connection to PostgreSQL breaks in their middle."""

from collections.abc import AsyncIterator, Iterator
from itertools import count

import aiohttp
import asyncpg
import pytest

from tests.support.http_api import client_of
from trapline.api import application
from trapline.db.pool import Database
from trapline.settings import Settings

CUT = "SELECT pg_terminate_backend($1)"


@pytest.fixture
def attempts() -> Iterator[int]:
    return count(1)


@pytest.fixture
async def client(
    database: Database, server_settings: Settings, attempts: Iterator[int]
) -> AsyncIterator[aiohttp.ClientSession]:
    """The application, with a route that loses its connection the first two times."""
    app = application.build(database, server_settings)
    owner = await asyncpg.connect(database.dsn)

    async def third_time() -> int:
        attempt = next(attempts)
        async with database.system_tx() as conn:
            if attempt < 3:
                await owner.execute(CUT, conn.get_server_pid())
                await conn.execute("SELECT")
        return attempt

    app.add_api_route("/cut", third_time, methods=["GET", "POST"])
    # Before the rule that answers for whatever Firecrawl's API does not have.
    app.add_api_route("/v2/cut", third_time, methods=["POST"])
    app.router.routes.insert(0, app.router.routes.pop())
    async with client_of(app) as client:
        yield client
    await owner.close()


async def test_a_read_is_done_again(client: aiohttp.ClientSession) -> None:
    async with client.get("/cut") as answer:
        assert (answer.status, await answer.json()) == (200, 3)
    async with client.get("/metrics") as answer:
        assert 'route="/cut",status="200"' in await answer.text()


async def test_what_may_have_written_is_done_once(
    client: aiohttp.ClientSession, attempts: Iterator[int]
) -> None:
    async with client.post("/cut") as answer:
        assert (answer.status, answer.content_type) == (503, "application/problem+json")
        assert "not known" in (await answer.json())["detail"]
        assert int(answer.headers["Retry-After"]) > 0
    assert next(attempts) == 2


async def test_clients_of_firecrawl_are_told_in_its_words(client: aiohttp.ClientSession) -> None:
    async with client.post("/v2/cut") as answer:
        body = await answer.json()
    assert (answer.status, body["success"]) == (503, False)
    assert "not known" in body["error"]
