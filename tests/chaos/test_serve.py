"""`trapline serve` on its own embedded PostgreSQL, killed in every way."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.command import Trapline
from tests.lodger import Household, household


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Household]:
    with household(tmp_path / "home") as house:
        yield house


@pytest.fixture
def trapline(house: Household, tmp_path: Path) -> Trapline:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    return Trapline(kept | {"TRAPLINE_HOME": str(house.home)}, tmp_path)


async def names(url: str) -> list[str]:
    async with aiohttp.ClientSession() as client, client.get(f"{url}/api/organisations") as answer:
        assert answer.status == 200, await answer.text()
        return [row["name"] for row in await answer.json()]


async def test_requests_outlive_the_database_server(trapline: Trapline, house: Household) -> None:
    process, url = await trapline.serving()
    assert await names(url) == ["default"]
    for victim in (house.postmaster(), *house.watchers()):
        os.kill(victim, signal.SIGKILL)
        assert await names(url) == ["default"]
    process.terminate()
    await process.communicate()
    assert process.returncode == 0
    house.wait_until_gone()


async def test_what_was_committed_survives_kill_9(trapline: Trapline, house: Household) -> None:
    process, url = await trapline.serving()
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{url}/api/organisations", json={"name": "Acme"}) as answer,
    ):
        assert answer.status == 201
    process.kill()
    await process.communicate()
    house.wait_until_gone()
    process, url = await trapline.serving()
    assert await names(url) == ["default", "Acme"]
    process.send_signal(signal.SIGINT)
    await process.communicate()
    assert process.returncode == 0
