"""schema.sql: what all migrations and functions together make, for people to read."""

import re
import subprocess
from typing import Final

from trapline.db.embedded import binary
from trapline.db.sql_split import segments

HEADER: Final = """\
-- The whole schema, made by `make sql` from migrations/ and functions/: edit those instead.
SET check_function_bodies = false;
"""

# Commands of psql, settings of the session, and the titles that pg_dump gives each object.
_NOISE = re.compile(r"\\|SET |SELECT pg_catalog\.set_config|--")


def dump(dsn: str) -> str:
    """Return a database's schema in a form that depends on nothing but the schema."""
    options = ["--schema-only", "--no-owner", "--exclude-schema=trapline"]
    text = subprocess.run(
        [binary("pg_dump"), *options, dsn], check=True, capture_output=True, text=True
    ).stdout
    return f"{HEADER}\n{normalised(text)}"


def normalised(text: str) -> str:
    """Drop what is not schema, and doubled empty lines; the bodies of functions stay as they are."""
    bodies = _lines_inside_bodies(text)
    kept: list[str] = []
    for number, line in enumerate(text.split("\n")):
        doubled = not line and (not kept or not kept[-1])
        if number in bodies or not (doubled or _NOISE.match(line)):
            kept.append(line)
    return "\n".join(kept).strip() + "\n"


def _lines_inside_bodies(text: str) -> set[int]:
    inside: set[int] = set()
    number = 0
    for piece, is_code in segments(text):
        breaks = piece.count("\n")
        if not is_code:
            inside.update(range(number + 1, number + breaks + 1))
        number += breaks
    return inside
