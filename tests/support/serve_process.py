"""A running `trapline serve` beside the test site, shared by the tests of one process."""

import asyncio
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from tests.site.site import Site
from tests.support.cli import PROGRAM
from tests.support.llm_server import LlmServer, answering
from tests.support.postgres import on_database


@contextmanager
def serving(
    environment: dict[str, str], *arguments: str
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Start the server on a free port; yield its URL once it says that it serves."""
    process = subprocess.Popen(
        [PROGRAM, "serve", "--port", "0", *arguments], env=environment, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    lines: list[bytes] = []
    for line in process.stderr:
        lines.append(line)
        found = re.search(rb'"url": "(http://[^"]+)"', line)
        if found:
            break
    else:
        raise AssertionError(b"".join(lines).decode())
    # Whoever does not read its log stops it once the pipe is full.
    reader = threading.Thread(target=process.stderr.read, daemon=True)
    reader.start()
    try:
        yield found[1].decode(), process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(30)
        reader.join(10)
        process.stderr.close()


def environment(dsn: str, home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    return kept | {"DATABASE_URL": dsn, "TRAPLINE_HOME": str(home)} | more


@pytest.fixture(scope="session")
def served_site(
    server_dsn: str, site_server: Site, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a server that reaches the test site, with short politeness."""
    with database_of_its_own(server_dsn) as dsn:
        settings = environment(
            dsn,
            tmp_path_factory.mktemp("served"),
            TRAPLINE_ALLOW_LOCAL_WEBHOOKS="true",
            TRAPLINE_WEBHOOK_SECRET="s3cret",
            **site_server.env(),
        )
        with serving(settings) as (url, _):
            yield url


@pytest.fixture(scope="session")
def llm_server() -> Iterator[LlmServer]:
    """The language model and the search engine of `knowing_site`."""
    with answering() as found:
        yield found


@pytest.fixture(scope="session")
def knowing_site(
    server_dsn: str,
    site_server: Site,
    llm_server: LlmServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The URL of a server that has a language model and a search engine too."""
    with database_of_its_own(server_dsn) as dsn:
        settings = environment(
            dsn,
            tmp_path_factory.mktemp("knowing"),
            TRAPLINE_LLM_URL=f"{llm_server.url}/v1",
            TRAPLINE_LLM_KEY="sk-1",
            TRAPLINE_LLM_MODEL="tiny",
            TRAPLINE_LLM_INPUT_TOKENS="500",
            TRAPLINE_SEARXNG_URL=llm_server.url,
            **site_server.env(),
        )
        with serving(settings) as (url, _):
            yield url


@contextmanager
def database_of_its_own(dsn: str) -> Iterator[str]:
    name = f"served_{uuid4().hex}"
    _execute(dsn, f"CREATE DATABASE {name} STRATEGY FILE_COPY")
    try:
        yield on_database(dsn, name)
    finally:
        _execute(dsn, f"DROP DATABASE {name} WITH (FORCE)")


def _execute(dsn: str, statement: str) -> None:
    async def run() -> None:
        conn = await asyncpg.connect(dsn)
        try:
            await conn.execute(statement)
        finally:
            await conn.close()

    # The session's own loop is asleep while a test that is no coroutine runs.
    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    thread.join()
