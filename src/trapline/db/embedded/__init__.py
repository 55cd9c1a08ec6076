"""A PostgreSQL of our own, under `Settings.home`, shared by every Trapline process on that home.

`running` starts or joins it; whoever leaves last has it stopped, also when leaving means kill -9.
In: Settings. Out: a Server with its DSN. See docs/decisions/001-embedded-postgres.md.
"""

from trapline.db.embedded.cluster import MAJOR_VERSION
from trapline.db.embedded.programs import binary
from trapline.db.embedded.server import Server, Status, running, status

__all__ = ["MAJOR_VERSION", "Server", "Status", "binary", "running", "status"]
