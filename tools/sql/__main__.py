"""Regenerate schema.sql and the query modules; with `release`, list the migrations as released."""

import asyncio
import sys
from pathlib import Path

from tools.sql.generate import generate, release
from tools.sql.queries import QueryError
from trapline.errors import MigrationError

SOURCE = Path(__file__).parents[2] / "src" / "trapline"


def main() -> None:
    try:
        releases = sys.argv[1:] == ["release"]
        changed = release(SOURCE) if releases else asyncio.run(generate(SOURCE))
    except (MigrationError, QueryError) as error:
        sys.exit(str(error))
    for path in changed:
        sys.stdout.write(f"wrote {path.relative_to(Path.cwd())}\n")


main()
