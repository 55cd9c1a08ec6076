"""The requirements on a PostgreSQL server: version and extensions, checked before anything else."""

from dataclasses import dataclass

import asyncpg

from trapline.db.connection import Connection
from trapline.errors import DatabaseUnavailable

MINIMUM_VERSION = 150000
REQUIRED_EXTENSIONS = ("pg_trgm", "vector")
OPTIONAL_EXTENSIONS = ("pg_stat_statements",)


@dataclass(frozen=True, slots=True)
class ServerReport:
    """Version, limits and missing extensions of a server."""

    version: str
    version_number: int
    max_connections: int
    missing: tuple[str, ...]
    missing_optional: tuple[str, ...]

    @property
    def problem(self) -> str | None:
        if self.version_number < MINIMUM_VERSION:
            return (
                f"PostgreSQL {self.version} is too old: Trapline needs 15 or newer."
                " Upgrade it, or unset DATABASE_URL to use the embedded server."
            )
        if self.missing:
            names = ", ".join(self.missing)
            return (
                f"PostgreSQL {self.version} lacks the extension(s) {names}."
                " Install them on the server (Debian: postgresql-NN-pgvector, postgresql-contrib)."
            )
        return None


async def inspect(conn: Connection) -> ServerReport:
    available = {
        row["name"] for row in await conn.fetch("SELECT name FROM pg_available_extensions")
    }
    rows = await conn.fetch(
        "SELECT name, setting FROM pg_settings"
        " WHERE name IN ('server_version', 'server_version_num', 'max_connections')"
    )
    settings = {row["name"]: row["setting"] for row in rows}
    return ServerReport(
        version=settings["server_version"].split()[0],
        version_number=int(settings["server_version_num"]),
        max_connections=int(settings["max_connections"]),
        missing=tuple(name for name in REQUIRED_EXTENSIONS if name not in available),
        missing_optional=tuple(name for name in OPTIONAL_EXTENSIONS if name not in available),
    )


async def require(conn: Connection) -> ServerReport:
    """Raise DatabaseUnavailable, with what to do, if the server does not meet the requirements."""
    report = await inspect(conn)
    if report.problem:
        raise DatabaseUnavailable(report.problem)
    return report


async def install_extensions(conn: Connection) -> None:
    """Create the missing extensions; an optional one that we may not create is left out."""
    rows = await conn.fetch(
        "SELECT name, format('CREATE EXTENSION IF NOT EXISTS %I', name) AS statement"
        " FROM pg_available_extensions WHERE name = ANY($1) AND installed_version IS NULL",
        [*REQUIRED_EXTENSIONS, *OPTIONAL_EXTENSIONS],
    )
    for row in rows:
        try:
            async with conn.transaction():
                # Two sessions that create the same extension at once fail on its catalogue row.
                await conn.execute("SELECT pg_advisory_xact_lock(hashtext('trapline extensions'))")
                await conn.execute(row["statement"])
        except asyncpg.InsufficientPrivilegeError:
            if row["name"] in REQUIRED_EXTENSIONS:
                raise DatabaseUnavailable(
                    f"This database user may not create the extension {row['name']}."
                    f" An administrator must run once: {row['statement']};"
                ) from None
