"""An embedded PostgreSQL in a home of its own, gone when the block ends."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trapline.db import embedded
from trapline.settings import Settings


@asynccontextmanager
async def server() -> AsyncIterator[tuple[str, Settings]]:
    """Yield the URL of an empty database and the settings to open it with."""
    home = Path(tempfile.mkdtemp(prefix="trapline-sql-"))
    settings = Settings(home=home, database_url=None, db_host=None)
    try:
        async with embedded.running(settings) as running:
            yield running.dsn, settings
    finally:
        # Its watcher stops it now that nobody is left.
        while embedded.status(settings).running:  # noqa: ASYNC110 (it is another process)
            await asyncio.sleep(0.05)
        shutil.rmtree(home)
