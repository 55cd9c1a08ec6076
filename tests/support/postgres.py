"""A fresh, migrated database for every test, in milliseconds.

All xdist workers of a run share one embedded server. Each worker migrates one template database;
a test gets a copy of it, which is dropped at its end.
"""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from tests.support.settings import make_settings
from trapline.db import pool, tenancy
from trapline.db.pool import Database, ExternalServer
from trapline.model import OrganisationId
from trapline.settings import Settings


def _run_home(config: pytest.Config) -> Path:
    """Return the home of this test run: the same for all of its workers, another for each run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or config.stash.setdefault(_RUN, uuid4().hex)
    return Path(tempfile.gettempdir()) / f"trapline-tests-{run}"


_RUN = pytest.StashKey[str]()


def pytest_configure_node(node: object) -> None:
    """Tell the controller which run its workers belong to, so that it can clean up after them."""
    node.config.stash[_RUN] = node.workerinput["testrunuid"]  # type: ignore[attr-defined]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the home once every worker has left it; the server stops by itself."""
    if not hasattr(config, "workerinput") and _RUN in config.stash:
        shutil.rmtree(_run_home(config), ignore_errors=True)


@pytest.fixture(scope="session")
def server_settings(pytestconfig: pytest.Config) -> Settings:
    """The settings of the server that all tests share."""
    return make_settings(home=_run_home(pytestconfig), pool_size=6)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server_dsn(server_settings: Settings) -> AsyncIterator[str]:
    """The shared server. What it holds need not survive a power cut; tests of that run their own."""
    async with (
        pool.server(server_settings.database) as server,
        pool.owner(server.dsn, server_settings.database) as conn,
    ):
        for parameter in ("fsync", "full_page_writes", "synchronous_commit"):
            await conn.execute(f"ALTER SYSTEM SET {parameter} = off")
        await conn.execute("SELECT pg_reload_conf()")
        yield server.dsn


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def template(server_dsn: str, server_settings: Settings) -> AsyncIterator[str]:
    """The name of this worker's migrated template database."""
    name = f"template_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{uuid4().hex[:8]}"
    async with pool.owner(server_dsn, server_settings.database) as conn:
        await conn.execute(f"CREATE DATABASE {name}")
        async with pool.owner(on_database(server_dsn, name), server_settings.database) as fresh:
            await pool.prepare(fresh)
        yield name
        await conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def dsn(server_dsn: str, template: str) -> AsyncIterator[str]:
    """The URL of a fresh, migrated database, as its owner."""
    name = f"test_{uuid4().hex}"
    conn = await asyncpg.connect(server_dsn)
    try:
        await conn.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        yield on_database(server_dsn, name)
        await conn.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await conn.close()


@pytest.fixture
async def empty_dsn(server_dsn: str) -> AsyncIterator[str]:
    """The URL of a fresh database without any migration, as its owner."""
    name = f"empty_{uuid4().hex}"
    conn = await asyncpg.connect(server_dsn)
    try:
        await conn.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY")
        yield on_database(server_dsn, name)
        await conn.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await conn.close()


@pytest.fixture
async def database(dsn: str, server_settings: Settings) -> AsyncIterator[Database]:
    async with Database.connect(ExternalServer(dsn), server_settings) as opened:
        yield opened


@pytest.fixture
async def organisation_id(database: Database) -> OrganisationId:
    """The default organisation, as the API and the command line use it without keys."""
    async with database.system_tx() as conn:
        return await tenancy.ensure_default(conn)


def on_database(dsn: str, name: str) -> str:
    """Return the same URL with another database."""
    head, _, parameters = dsn.partition("?")
    return f"{head.rsplit('/', 1)[0]}/{name}?{parameters}"
