"""Export of rows as JSON Lines files, each written atomically."""

import asyncio
import os
from datetime import datetime
from pathlib import Path
from typing import Final

from trapline.db.connection import OwnConnection
from trapline.errors import Unavailable

_ROWS_AT_ONCE: Final = 1000


async def write(
    conn: OwnConnection, path: Path, statement: str, since: datetime, until: datetime
) -> None:
    """Write the rows of a statement to a file, one JSON text a line, with a cursor."""
    part = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as file:
            rows = await conn.cursor(statement, since, until)
            while some := await rows.fetch(_ROWS_AT_ONCE):
                file.writelines(f"{row[0]}\n" for row in some)
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
        part.rename(path)
    except OSError as error:
        raise Unavailable(f"{path} could not be written, so the log stays: {error}") from None
