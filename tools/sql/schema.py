"""schema.sql: what all migrations and functions together make, for people to read."""

import re
import subprocess
from typing import Final

from tools.sql.scratch import BINARIES

HEADER: Final = (
    "-- The whole schema, made by `make sql` from migrations/ and functions/: not edited.\n"
)

# Psql's own commands, session settings and the titles that pg_dump gives each object.
_NOISE = re.compile(r"^(?:\\|SET |SELECT pg_catalog\.set_config|--)")


def dump(dsn: str) -> str:
    """Return a database's schema in a form that depends on nothing but the schema."""
    options = [
        "--schema-only",
        "--no-owner",
        "--exclude-schema=trapline",
        "--restrict-key=trapline",
    ]
    text = subprocess.run(
        [BINARIES / "pg_dump", *options, dsn], check=True, capture_output=True, text=True
    ).stdout
    return HEADER + normalised(text)


def normalised(text: str) -> str:
    """Drop what is not schema, and runs of empty lines."""
    lines = [line.rstrip() for line in text.splitlines() if not _NOISE.match(line)]
    return "\n" + re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"
