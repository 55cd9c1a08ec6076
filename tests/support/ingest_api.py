"""The HTTP application with a worker, in the test's own loop: what is uploaded is also processed."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import aiohttp
import pytest
import uvicorn

from tests.site.site import Site
from tests.support.scraper import site_settings
from trapline import app
from trapline.api import application
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.settings import Settings

Files = Mapping[str, bytes | str]


@asynccontextmanager
async def answering(
    database: Database, settings: Settings, listener: socket.socket | None = None
) -> AsyncIterator[aiohttp.ClientSession]:
    """Serve the application beside a worker, on a free port or one that the test has taken."""
    async with database.system_tx() as conn:
        await tenancy.ensure_default(conn)
    async with app.run_worker(database, settings) as work:
        listener = listener or socket.create_server(("127.0.0.1", 0))
        built = application.build(database, settings, work.services)
        server = uvicorn.Server(uvicorn.Config(built, log_config=None, lifespan="off"))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            async with aiohttp.ClientSession(base) as client:
                yield client
        finally:
            server.should_exit = True
            await running


@pytest.fixture
async def ingest_client(
    database: Database, server_settings: Settings, site: Site
) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a server that takes in files and pages."""
    async with answering(database, site_settings(server_settings, site)) as client:
        yield client


async def upload(
    client: aiohttp.ClientSession, files: Files, **fields: str
) -> tuple[int, dict[str, Any]]:
    """Send files in one form."""
    form = aiohttp.FormData()
    for name, value in fields.items():
        form.add_field(name, value)
    for name, body in files.items():
        data = body.encode() if isinstance(body, str) else body
        form.add_field("files", data, filename=name, content_type="application/octet-stream")
    async with client.post("/upload/documents", data=form) as answer:
        return answer.status, await answer.json()


async def asked(client: aiohttp.ClientSession, path: str, method: str = "GET", **body: Any) -> Any:
    """Ask for JSON; a refusal is an error of the test."""
    async with client.request(method, path, json=body or None) as answer:
        text = await answer.text()
        assert answer.status < 400, (answer.status, text)
        return json.loads(text) if text else None


async def ended(client: aiohttp.ClientSession, job_id: str | UUID) -> dict[str, Any]:
    """Wait until a job has ended."""
    async with asyncio.timeout(60):
        while True:
            job: dict[str, Any] = await asked(client, f"/api/jobs/{job_id}")
            if job["status"] in {"completed", "failed", "cancelled"}:
                return job
            await asyncio.sleep(0.05)
