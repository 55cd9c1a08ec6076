"""`trapline doctor`: check this machine, and say how to repair what is wrong."""

import resource
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Literal

import asyncpg
import click
import psutil
from rich.console import Console
from rich.table import Table

from trapline import native
from trapline.cli import terminal
from trapline.db import connection, pool, roles, server_requirements
from trapline.db.connection import LOST, Connection
from trapline.ephemeral import redis
from trapline.errors import TraplineError
from trapline.fetch.browser.binary import INSTALL
from trapline.fetch.browser.process import browser_version
from trapline.settings import Settings

_GIGABYTE = 1 << 30
_MINIMUM_DISK = 2 * _GIGABYTE
_MINIMUM_MEMORY = 1 * _GIGABYTE
_MINIMUM_FILES = 1024

State = Literal["ok", "warning", "problem"]
_MARKS: dict[State, str] = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "problem": "[red]✗[/]"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's table."""

    check: str
    state: State
    found: str
    remedy: str = ""


@click.command()
@terminal.json_option
@click.pass_obj
@terminal.asynchronous
async def command(settings: Settings, as_json: bool) -> None:
    """Check this machine: PostgreSQL, disk, memory, limits, browser, Redis, ports.

    Exits with 1 when there is a problem; a warning is no problem.

    \b
    Example: trapline doctor --json
    """
    findings = [finding async for finding in _examine(settings)]
    if as_json:
        terminal.show_json([asdict(finding) for finding in findings])
    else:
        _print(findings)
    if any(finding.state == "problem" for finding in findings):
        raise click.exceptions.Exit(1)


async def _examine(settings: Settings) -> AsyncIterator[Finding]:
    yield _python()
    yield _reader()
    yield _disk(settings)
    yield _memory()
    yield _files()
    async for finding in _postgres(settings):
        yield finding
    yield await _redis(settings)
    yield await _browser(settings)
    yield _port(settings)


def _python() -> Finding:
    return Finding("Python", "ok", sys.version.split()[0])


def _reader() -> Finding:
    if native.available:
        return Finding("Page reader", "ok", "compiled")
    remedy = (
        "Extraction takes about twice as long. Install a C compiler and install Trapline again."
    )
    return Finding("Page reader", "warning", "Python alone", remedy)


def _disk(settings: Settings) -> Finding:
    directory = next(
        p for p in (settings.database.home, *settings.database.home.parents) if p.exists()
    )
    free = shutil.disk_usage(directory).free
    detail = f"{free / _GIGABYTE:.1f} GB free for {settings.database.home}"
    if free < _MINIMUM_DISK:
        return Finding(
            "Disk", "problem", detail, "Free some space, or set TRAPLINE_HOME elsewhere."
        )
    return Finding("Disk", "ok", detail)


def _memory() -> Finding:
    available = psutil.virtual_memory().available
    detail = f"{available / _GIGABYTE:.1f} GB available"
    if available < _MINIMUM_MEMORY:
        return Finding(
            "Memory", "warning", detail, "Lower TRAPLINE_POOL_SIZE, or stop other programs."
        )
    return Finding("Memory", "ok", detail)


def _files() -> Finding:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit < _MINIMUM_FILES:
        return Finding("Open files", "warning", str(limit), "Run `ulimit -n 4096` before Trapline.")
    return Finding("Open files", "ok", str(limit))


async def _postgres(settings: Settings) -> AsyncIterator[Finding]:
    kind = "external" if settings.database.external_dsn() else "embedded"
    try:
        async with pool.server(settings.database) as server:
            conn = await connection.connect(
                server.dsn, connection.session_parameters(settings.database)
            )
            try:
                async for finding in _server(conn, kind, settings):
                    yield finding
            finally:
                await conn.close()
    except TraplineError as error:
        yield Finding("PostgreSQL", "problem", f"{kind}: {error.message}", "See docs/settings.md.")
    except (*LOST, asyncpg.PostgresError, ValueError) as error:
        remedy = "Check DATABASE_URL and that the server runs; unset it to use the embedded one."
        yield Finding("PostgreSQL", "problem", f"{kind}: {error}", remedy)


async def _server(conn: Connection, kind: str, settings: Settings) -> AsyncIterator[Finding]:
    report = await server_requirements.inspect(conn)
    if report.problem:
        yield Finding("PostgreSQL", "problem", f"{kind} {report.version}", report.problem)
    else:
        yield Finding("PostgreSQL", "ok", f"{kind} {report.version}")
    for name in report.missing_optional:
        yield Finding(name, "warning", "not available", "Statement statistics will be missing.")
    if settings.database.pool_size > report.max_connections * 4 // 5:
        detail = f"{settings.database.pool_size} of {report.max_connections} connections"
        yield Finding(
            "Pool", "problem", detail, "Lower TRAPLINE_POOL_SIZE or raise max_connections."
        )
    lacking = await roles.missing(conn)
    if lacking:
        yield Finding("Roles", "problem", lacking, "An administrator must run this SQL once.")
    else:
        yield Finding("Roles", "ok", "worker and tenant can be used")


async def _redis(settings: Settings) -> Finding:
    if settings.server.redis_url is None:
        return Finding("Redis", "ok", "not configured; nothing needs it")
    if await redis.ping(settings.server.redis_url.get_secret_value()):
        return Finding("Redis", "ok", "answers")
    return Finding("Redis", "problem", "does not answer", "Start it, or unset REDIS_URL.")


async def _browser(settings: Settings) -> Finding:
    try:
        version = await browser_version(settings.browser)
    except TraplineError as error:
        remedy = f"Run `{INSTALL}`; everything that needs no browser works without one."
        return Finding("Browser", "warning", error.message, remedy)
    return Finding("Browser", "ok", version)


def _port(settings: Settings) -> Finding:
    address = f"{settings.server.host}:{settings.server.port}"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.server.host, settings.server.port))
        except OSError as error:
            remedy = "Fine if that is Trapline itself; else set TRAPLINE_PORT."
            return Finding("Port", "warning", f"{address}: {error.strerror}", remedy)
    return Finding("Port", "ok", f"{address} is free")


def _print(findings: list[Finding]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "check", "found", "remedy"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        table.add_row(_MARKS[finding.state], finding.check, finding.found, finding.remedy)
    Console().print(table)
