"""Schema migrations: numbered, hashed files that run once, and functions and views that are re-created.

In: a connection of the schema's owner, with the time-outs of maintenance. Out: the applied or reverted migrations.
Owns the schema `trapline`: migration, functions.

    sql/migrations/NNNN_name.up.sql      runs once, in one transaction
    sql/migrations/NNNN_name.down.sql    reverts it
    sql/functions/*.sql                  re-run, in one transaction, after every change of one of them
                                         and after every migration; functions that no file creates
                                         any more are dropped
    sql/views/SCHEMA.sql                 the same, for the views of one schema

A migration whose first line is `-- trapline: no-transaction` runs statement by statement, for
CREATE INDEX CONCURRENTLY. Its statements must be idempotent (IF NOT EXISTS), because after an
interruption it starts again from the top.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property, partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Final

import asyncpg

from trapline.db import compatibility_views, schemas
from trapline.db.connection import OwnConnection
from trapline.db.sql_split import split_statements
from trapline.errors import MigrationError
from trapline.logs import get_logger

log = get_logger(__name__)

SQL: Final = Path(__file__).parent / "sql"
NO_TRANSACTION: Final = "-- trapline: no-transaction"

_LOCK: Final = 0x74_72_61_70_6C_69_6E_65  # "trapline" in ASCII
_LOCK_POLL: Final = 0.1
# All other transactions queue behind a waiting ALTER TABLE, so it gives up soon and tries again later.
_SHORT_LOCK_WAIT: Final = "SET lock_timeout = '2s'"
_LOCK_ATTEMPTS: Final = 60
_LOCK_PAUSE: Final = 1.0

_FILE: Final = re.compile(r"(?P<number>\d{4})_(?P<word>[a-z0-9_]+)\.(?P<way>up|down)\.sql")

_CREATED_FUNCTION: Final = re.compile(r"CREATE (?:OR REPLACE )?FUNCTION ([a-z_]+\.[a-z_]+)")
_ORPHANS: Final = """
SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = ANY ($1) AND n.nspname || '.' || p.proname <> ALL ($2)
    AND p.xmin <> pg_current_xact_id()::xid
"""

_LEDGER: Final = """
CREATE SCHEMA IF NOT EXISTS trapline;
CREATE TABLE IF NOT EXISTS trapline.migration (
    name text PRIMARY KEY,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    duration interval NOT NULL
);
CREATE TABLE IF NOT EXISTS trapline.functions (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""


@dataclass(frozen=True)
class Migration:
    """A numbered pair of files."""

    number: int
    name: str
    up: str
    down: str

    @cached_property
    def sha256(self) -> str:
        return sha256(self.up.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class AppliedMigration:
    """An applied or reverted migration, and how long it took."""

    name: str
    duration: timedelta


class MigrationState(StrEnum):
    APPLIED = "applied"
    PENDING = "pending"
    CHANGED = "changed"
    """Applied, but its file was edited since."""
    UNKNOWN = "unknown"
    """Applied, but this version of Trapline has no such file."""


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    name: str
    state: MigrationState
    applied_at: datetime | None = None


async def upgrade(conn: OwnConnection, *, sql: Path = SQL) -> list[AppliedMigration]:
    """Apply the missing migrations. Processes that call this at once wait for each other."""
    migrations = load(sql)
    async with _migration_lock(conn):
        applied = await _applied_names(conn, migrations)
        missing = [m for m in migrations if m.name not in applied]
        if missing:
            await compatibility_views.drop(conn)
        done = [await _apply(conn, m) for m in missing]
        await _run_functions(conn, sql, migrations)
        return done


async def downgrade(
    conn: OwnConnection,
    *,
    to: int | None = None,
    sql: Path = SQL,
) -> list[AppliedMigration]:
    """Revert the last migration, or every one numbered above `to`, newest first."""
    migrations = load(sql)
    async with _migration_lock(conn):
        applied = await _applied_names(conn, migrations)
        present = [m for m in reversed(migrations) if m.name in applied]
        to_revert = present[:1] if to is None else [m for m in present if m.number > to]
        if to_revert:
            await compatibility_views.drop(conn)
        return [await _revert(conn, m) for m in to_revert]


async def status(conn: OwnConnection, *, sql: Path = SQL) -> list[MigrationStatus]:
    """Compare the files with the database, without changes."""
    rows = await _ledger(conn)
    known = {m.name: m for m in load(sql)}
    return [_status_of(name, known.get(name), rows.get(name)) for name in sorted({*known, *rows})]


def _status_of(name: str, file: Migration | None, row: asyncpg.Record | None) -> MigrationStatus:
    if row is None:
        return MigrationStatus(name, MigrationState.PENDING)
    if file is None:
        return MigrationStatus(name, MigrationState.UNKNOWN, row["applied_at"])
    state = MigrationState.APPLIED if row["sha256"] == file.sha256 else MigrationState.CHANGED
    return MigrationStatus(name, state, row["applied_at"])


def load(sql: Path = SQL) -> list[Migration]:
    """Read the migrations in order; a misnamed, duplicate or incomplete one is an error."""
    pairs: dict[str, dict[str, str]] = {}
    for path in sorted((sql / "migrations").glob("*.sql")):
        match = _FILE.fullmatch(path.name)
        if match is None:
            raise MigrationError(f"{path.name}: a migration is named 0001_word.up.sql or .down.sql")
        name = f"{match['number']}_{match['word']}"
        pairs.setdefault(name, {})[match["way"]] = path.read_text()
    for name, pair in pairs.items():
        for way in {"up", "down"} - pair.keys():
            raise MigrationError(f"{name}.{way}.sql is missing: a migration has an up and a down")
    migrations = [Migration(int(name[:4]), name, p["up"], p["down"]) for name, p in pairs.items()]
    for first, second in pairwise(migrations):
        if first.number == second.number:
            raise MigrationError(f"{first.name} and {second.name} have the same number")
    return migrations


@asynccontextmanager
async def _migration_lock(conn: OwnConnection) -> AsyncIterator[None]:
    """Hold the migration lock of this database, and ensure its ledger exists.

    It polls instead of waiting in pg_advisory_lock: a waiting statement holds a snapshot, and
    CREATE INDEX CONCURRENTLY in the process with the lock would wait for that snapshot: a deadlock.
    """
    while not await conn.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):  # noqa: ASYNC110 (another process has it)
        await asyncio.sleep(_LOCK_POLL)
    try:
        await conn.execute(_SHORT_LOCK_WAIT)
        if await conn.fetchval("SELECT to_regclass('trapline.functions')") is None:
            await conn.execute(_LEDGER)
        yield
    finally:
        if not conn.is_closed():
            await conn.execute("RESET lock_timeout")
            await conn.fetchval("SELECT pg_advisory_unlock($1)", _LOCK)


async def _ledger(conn: OwnConnection) -> dict[str, asyncpg.Record]:
    if await conn.fetchval("SELECT to_regclass('trapline.migration')") is None:
        return {}
    rows = await conn.fetch("SELECT name, sha256, applied_at FROM trapline.migration")
    return {row["name"]: row for row in rows}


async def _applied_names(conn: OwnConnection, migrations: Sequence[Migration]) -> set[str]:
    """Return the names of the applied migrations after checking them against the files."""
    rows = await _ledger(conn)
    known = {m.name: m for m in migrations}
    _refuse_unknown(rows.keys() - known.keys(), max(known, default="0000"))
    for name, row in rows.items():
        if row["sha256"] != known[name].sha256:
            raise MigrationError(
                f"{name}.up.sql was edited after it had been applied to this database."
                " Restore the file and write the change as a new migration."
            )
    _refuse_late(known.keys() - rows.keys(), max(rows, default="0000"))
    return set(rows)


def _refuse_unknown(unknown: set[str], newest_known: str) -> None:
    if not unknown:
        return
    newest = max(unknown)
    if newest > newest_known:
        raise MigrationError(
            f"This database was migrated by a newer Trapline: it has {newest}, and this version"
            f" knows migrations up to {newest_known}. Install the newer version."
        )
    raise MigrationError(f"{newest} is applied to this database, but its file is missing.")


def _refuse_late(pending: set[str], newest_applied: str) -> None:
    """Refuse migrations of two branches in an order that was never tested."""
    late = min(pending, default=newest_applied)
    if late < newest_applied:
        raise MigrationError(
            f"{late} is numbered before {newest_applied}, which this database already has."
            " Give it the next free number."
        )


async def _apply(conn: OwnConnection, migration: Migration) -> AppliedMigration:
    async def record(seconds: float) -> None:
        await conn.execute(
            "INSERT INTO trapline.migration (name, sha256, duration) VALUES ($1, $2, $3)",
            migration.name,
            migration.sha256,
            timedelta(seconds=seconds),
        )

    seconds = await _run(conn, f"{migration.name}.up.sql", migration.up, record)
    return AppliedMigration(migration.name, timedelta(seconds=seconds))


async def _revert(conn: OwnConnection, migration: Migration) -> AppliedMigration:
    async def record(_seconds: float) -> None:
        await conn.execute("DELETE FROM trapline.migration WHERE name = $1", migration.name)
        # It may have dropped some of them: the next upgrade creates them all again.
        await conn.execute("DELETE FROM trapline.functions")

    seconds = await _run(conn, f"{migration.name}.down.sql", migration.down, record)
    return AppliedMigration(migration.name, timedelta(seconds=seconds))


async def _run(
    conn: OwnConnection, file: str, script: str, record: Callable[[float], Awaitable[None]]
) -> float:
    """Run a file and record it in the ledger; return the seconds it took."""
    begin = time.monotonic()

    async def in_one_transaction() -> None:
        async with conn.transaction():
            await conn.execute(script)
            await record(time.monotonic() - begin)

    try:
        if script.startswith(NO_TRANSACTION):
            await _run_without_transaction(conn, script)
            await record(time.monotonic() - begin)
        else:
            await _with_lock_retries(in_one_transaction)
    except asyncpg.PostgresError as error:
        raise MigrationError(f"{file} failed: {error}") from error
    seconds = time.monotonic() - begin
    log.info("migration done", file=file, seconds=round(seconds, 3))
    return seconds


async def _run_without_transaction(conn: OwnConnection, script: str) -> None:
    await _drop_half_built_indexes(conn, script)
    for statement in split_statements(script):
        if re.search(r"\bCONCURRENTLY\b", statement, re.IGNORECASE):
            await _run_concurrently(conn, statement)
        else:
            await _with_lock_retries(partial(conn.execute, statement))


async def _run_concurrently(conn: OwnConnection, statement: str) -> None:
    """Run without a lock time-out: waiting blocks nobody, and giving up leaves an invalid index."""
    await conn.execute("SET lock_timeout = 0")
    await conn.execute(statement)
    await conn.execute(_SHORT_LOCK_WAIT)


async def _drop_half_built_indexes(conn: OwnConnection, script: str) -> None:
    """Drop invalid indexes of interrupted builds, which IF NOT EXISTS would mistake for valid ones."""
    invalid = await conn.fetch(
        "SELECT format('%I.%I', n.nspname, c.relname) AS full_name, c.relname AS name"
        " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE NOT i.indisvalid AND c.relkind = 'i'"
    )
    for row in invalid:
        if re.search(rf"\b{re.escape(row['name'])}\b", script):
            await _run_concurrently(conn, f"DROP INDEX CONCURRENTLY {row['full_name']}")


async def _with_lock_retries(action: Callable[[], Awaitable[object]]) -> None:
    """Try again while another transaction holds a lock for longer than our short lock_timeout."""
    for attempt in range(1, _LOCK_ATTEMPTS + 1):
        try:
            await action()
            return
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            if attempt == _LOCK_ATTEMPTS:
                raise
            log.info("migration waits for a lock", attempt=attempt)
            await asyncio.sleep(_LOCK_PAUSE)


async def _run_functions(conn: OwnConnection, sql: Path, migrations: Sequence[Migration]) -> None:
    """Re-create all functions and views if one of them or a migration changed."""
    files = sorted((sql / "functions").glob("*.sql"))
    views = await compatibility_views.runnable_files(conn, sql / "views")
    digest = sha256("".join(m.sha256 for m in migrations).encode())
    for path in (*files, *views):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    if digest.hexdigest() == await conn.fetchval("SELECT sha256 FROM trapline.functions"):
        return

    async def in_one_transaction() -> None:
        async with conn.transaction():
            for path in files:
                await _run_function_file(conn, path)
            for path in views:
                await compatibility_views.create_schema(conn, path.stem)
                await _run_function_file(conn, path)
                await compatibility_views.grant(conn, path.stem)
            await _drop_orphaned_functions(conn, migrations)
            await conn.execute(
                "INSERT INTO trapline.functions (sha256) VALUES ($1)"
                " ON CONFLICT (only_row) DO UPDATE SET sha256 = $1, applied_at = now()",
                digest.hexdigest(),
            )

    await _with_lock_retries(in_one_transaction)


async def _drop_orphaned_functions(conn: OwnConnection, migrations: Sequence[Migration]) -> None:
    """Drop functions that neither a migration nor this transaction has created."""
    permanent = [name for m in migrations for name in _CREATED_FUNCTION.findall(m.up)]
    orphans = await conn.fetchval(_ORPHANS, list(schemas.SCHEMAS), permanent)
    if orphans is not None:
        await conn.execute(f"DROP FUNCTION {orphans}")


async def _run_function_file(conn: OwnConnection, path: Path) -> None:
    try:
        await conn.execute(path.read_text())
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        raise
    except asyncpg.PostgresError as error:
        raise MigrationError(f"{path.name} failed: {error}") from error
