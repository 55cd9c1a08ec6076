"""Resource shortage: whether PostgreSQL refuses writes for want of disk space or memory."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# An embedded server needs so much for its write-ahead log alone.
_LEAST_FREE_BYTES: Final = 64 << 20


@dataclass(slots=True)
class ResourceShortage:
    """The last refusal, until a write succeeds again."""

    message: str | None = None

    def report(self, error: Exception) -> None:
        self.message = str(error)

    def clear(self) -> None:
        self.message = None


def low_disk_space(directory: Path) -> str | None:
    """Describe how little space is left on the disk of a directory; None if there is enough."""
    free = shutil.disk_usage(directory).free
    if free >= _LEAST_FREE_BYTES:
        return None
    return f"{free >> 20} MB are left on the disk of {directory}; free some space."
