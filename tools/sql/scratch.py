"""An embedded PostgreSQL in a home of its own, gone when the block ends."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trapline.db import embedded
from trapline.db.embedded import supervisor
from trapline.settings import DatabaseSettings


@asynccontextmanager
async def server() -> AsyncIterator[tuple[str, DatabaseSettings]]:
    """Yield the URL of an empty database and the settings to open it with."""
    home = Path(tempfile.mkdtemp(prefix="trapline-sql-"))
    settings = DatabaseSettings(home=home)
    try:
        async with embedded.running(settings) as running:
            yield running.dsn, settings
    finally:
        # The supervisor stops it after its last user.
        data = str(home / "postgres" / "data")
        while supervisor.postmaster(data) is not None:  # noqa: ASYNC110 (it is another process)
            await asyncio.sleep(0.05)
        shutil.rmtree(home)
