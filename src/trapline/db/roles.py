"""The worker role and the tenant role, created once per cluster."""

import asyncio
import random

import asyncpg

from trapline.db.connection import TENANT, WORKER, Connection
from trapline.errors import DatabaseUnavailable

# Roles belong to the cluster, so no lock of one database can serialise two databases that create them
# at once. The loser of that race gets one of these errors, and tries again.
_RACED = (
    asyncpg.DuplicateObjectError,
    asyncpg.UniqueViolationError,
    asyncpg.InternalServerError,
)
_ATTEMPTS = 20

ADMINISTRATOR_SQL = (
    f"CREATE ROLE {WORKER} NOLOGIN;\n"
    f"CREATE ROLE {TENANT} NOLOGIN;\n"
    f"GRANT {WORKER}, {TENANT} TO {{user}};"
)


async def missing(conn: Connection) -> str:
    """Return the SQL that an administrator must run; empty if the roles exist or can be created."""
    user = await conn.fetchval("SELECT quote_ident(session_user)")
    may_create = await conn.fetchval(
        "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = session_user"
    )
    usable = [
        await conn.fetchval("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role)
        and await conn.fetchval(_MAY_ACT_AS, role)
        for role in (WORKER, TENANT)
    ]
    return "" if may_create or all(usable) else ADMINISTRATOR_SQL.format(user=user)


async def ensure(conn: Connection) -> None:
    """Create both roles and make the login user a member of them, where missing."""
    for _ in range(_ATTEMPTS):
        try:
            for role in (WORKER, TENANT):
                await _ensure_one(conn, role)
        except _RACED:
            await asyncio.sleep(random.uniform(0.01, 0.1))  # noqa: S311 (jitter, not a secret)
        except asyncpg.InsufficientPrivilegeError:
            sql = await missing(conn)
            raise DatabaseUnavailable(
                f"This database user may not create roles. An administrator must run once:\n{sql}"
            ) from None
        else:
            return
    raise DatabaseUnavailable(
        "The roles of Trapline could not be created: too many databases create them at once. Try again."
    )


async def _ensure_one(conn: Connection, role: str) -> None:
    if not await conn.fetchval("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role):
        await conn.execute(_CREATE[role])
    if not await conn.fetchval(_MAY_ACT_AS, role):
        await conn.execute(_GRANT[role])


# Since PostgreSQL 16 the creator of a role is its member but may neither inherit from it nor become
# it; a superuser may do both with any role.
_MAY_ACT_AS = """
SELECT pg_has_role(session_user, $1, 'USAGE')
   AND pg_has_role(session_user, $1,
           CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END)
"""
_CREATE = {WORKER: "CREATE ROLE trapline_worker", TENANT: "CREATE ROLE trapline_tenant"}
_GRANT = {
    WORKER: "GRANT trapline_worker TO CURRENT_USER",
    TENANT: "GRANT trapline_tenant TO CURRENT_USER",
}
