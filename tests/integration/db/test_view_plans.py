"""Among many rows of many organisations, a question to the views begins at an index.

The rows are a fiftieth of those of `make bench-rows`, in the same proportions: enough that a plan
which reads a table as a whole costs more than one that does not.
"""

import re
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from tests.support.many_rows.fill import Filled, fill
from tests.support.many_rows.queries import Question, Within, plan_of, questions, scanned
from tests.support.postgres import on_database
from trapline.db.pool import Database, ExternalServer
from trapline.settings import Settings

_SHARE = 0.02
# An organisation may compare no text of another table with an index of its own (row-level security
# lets only leakproof functions near the rows of others), so it hashes all of its sessions.
_HASHED_BY_TENANTS = "nuq: jobs with sessions, 1 hour"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def masses(
    server_dsn: str, template: str, server_settings: Settings
) -> AsyncIterator[tuple[Database, Filled]]:
    name = f"masses_{uuid4().hex}"
    conn = await asyncpg.connect(server_dsn)
    try:
        await conn.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        server = ExternalServer(on_database(server_dsn, name))
        async with Database.connect(server, server_settings) as database:
            yield database, await fill(database, _SHARE)
        await conn.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await conn.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_an_organisations_questions_begin_at_an_index(
    masses: tuple[Database, Filled],
) -> None:
    database, found = masses
    async with database.tenant_tx(found.owner) as conn:
        for question in _bounded(found):
            plan = await plan_of(conn, question)
            whole = scanned(plan)
            if question.name == _HASHED_BY_TENANTS:
                whole = {name for name in whole if not name.startswith("past_job_")}
            assert not whole, f"{question.name}\n{plan}"


@pytest.mark.asyncio(loop_scope="module")
async def test_the_systems_questions_begin_at_an_index(masses: tuple[Database, Filled]) -> None:
    database, found = masses
    async with database.system_tx() as conn:
        for question in _bounded(found):
            plan = await plan_of(conn, question)
            assert not scanned(plan), f"{question.name}\n{plan}"


@pytest.mark.asyncio(loop_scope="module")
async def test_sessions_are_joined_by_their_index(masses: tuple[Database, Filled]) -> None:
    """Also from another table: the union of jobs and past jobs hides neither's index."""
    database, found = masses
    async with database.system_tx() as conn:
        (question,) = (q for q in questions(found) if q.name == _HASHED_BY_TENANTS)
        plan = await plan_of(conn, question)
    assert "job_text_idx" in plan, plan
    assert re.search(r"past_job_\d+_id_text_idx", plan), plan


@pytest.mark.asyncio(loop_scope="module")
async def test_an_organisation_sees_its_tenth(masses: tuple[Database, Filled]) -> None:
    """The questions have answers, so their plans are of what is there."""
    database, found = masses
    asked = "SELECT count(*) FROM bee.tasks"
    async with database.tenant_tx(found.owner) as conn:
        mine = await conn.fetchval(asked)
    async with database.system_tx() as conn:
        everything = await conn.fetchval(asked)
        pages = await conn.fetchval("SELECT count(*) FROM queue.task WHERE kind = 'single_urls'")
    assert everything == pages
    assert 0 < mine < everything / 5


def _bounded(found: Filled) -> list[Question]:
    """Return the questions that need not read everything."""
    return [q for q in questions(found) if q.within is not Within.COUNT]
