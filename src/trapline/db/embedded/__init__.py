"""The embedded PostgreSQL under `Settings.home`, shared by every Trapline process of that home.

`running` starts or joins it; the server stops when its last user ends, also by kill -9.
In: Settings. Out: an EmbeddedServer with its DSN. See docs/decisions/001-embedded-postgres.md.
"""

from trapline.db.embedded.binaries import binary
from trapline.db.embedded.cluster import MAJOR_VERSION
from trapline.db.embedded.server import EmbeddedServer, running

__all__ = ["MAJOR_VERSION", "EmbeddedServer", "binary", "running"]
