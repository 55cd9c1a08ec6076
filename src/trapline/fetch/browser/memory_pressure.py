"""Memory pressure: how full the control group is that this process lives in."""

from enum import IntEnum
from pathlib import Path
from typing import Final

import psutil

_V2: Final = Path("/sys/fs/cgroup")
_V1: Final = Path("/sys/fs/cgroup/memory")


class Pressure(IntEnum):
    """What the pool does at 70, 85 and 95 per cent."""

    LOW = 0
    NO_NEW_CONTEXTS = 70
    CLOSE_IDLE = 85
    RESTART = 95


def memory_pressure(share: float | None = None) -> Pressure:
    """Return the pressure of a share of used memory, by default that of this moment."""
    per_cent = 100 * (memory_share() if share is None else share)
    return max(level for level in Pressure if per_cent >= level or level is Pressure.LOW)


def memory_share() -> float:
    """Return the share of memory in use, of the control group or else of the machine."""
    used, limit = _control_group()
    machine = psutil.virtual_memory()
    if limit is None or limit >= machine.total:
        return 1 - machine.available / machine.total
    return used / limit


def _control_group() -> tuple[int, int | None]:
    for current, limit, statistics, name in (
        (_V2 / "memory.current", _V2 / "memory.max", _V2 / "memory.stat", "inactive_file"),
        (
            _V1 / "memory.usage_in_bytes",
            _V1 / "memory.limit_in_bytes",
            _V1 / "memory.stat",
            "total_inactive_file",
        ),
    ):
        used, most = _number(current), _number(limit)
        if used is not None and most is not None:
            # Cached files are given back when memory is short.
            return max(0, used - _statistic(statistics, name)), most
    return 0, None


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _statistic(path: Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    values = dict(line.split(" ", 1) for line in lines)
    return int(values.get(name, 0))
