"""As whom PostgreSQL runs: as ourselves or, since it refuses root, as a system user."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trapline.errors import EmbeddedPostgresError

_CREATED = "trapline"
_KNOWN = (_CREATED, "postgres")


@dataclass(frozen=True, slots=True)
class Owner:
    """The system user that runs the server and owns its data directory."""

    name: str
    uid: int
    gid: int

    @classmethod
    def of(cls, data: Path) -> "Owner":
        """Return who runs the server of a data directory, which need not exist yet."""
        if os.geteuid() != 0:
            return cls(user_name(os.geteuid()), os.geteuid(), os.getegid())
        known = [entry for name in _KNOWN if (entry := _find(name))]
        if data.exists():
            uid = data.stat().st_uid
            known.sort(key=lambda entry: entry.uid != uid)
        return known[0] if known else _create()

    def drop(self) -> dict[str, Any]:
        """Return the arguments with which `subprocess` runs a program as this user."""
        if os.geteuid() != 0:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": ()}


def user_name(uid: int) -> str:
    """Return a user's name, or its number where containers have no name for it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _find(name: str) -> Owner | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Owner(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _create() -> Owner:
    """Create the system user; another process may be doing the same, so only the result counts."""
    useradd = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false"]
    adduser = ["adduser", "-S", "-D", "-H", "-s", "/bin/false"]
    command = useradd if shutil.which("useradd") else adduser
    try:
        done = subprocess.run([*command, _CREATED], capture_output=True, text=True, check=False)
        complaint = done.stderr.strip()
    except OSError as error:
        complaint = str(error)
    if owner := _find(_CREATED):
        return owner
    raise EmbeddedPostgresError(
        f"PostgreSQL does not run as root, and the system user {_CREATED} could not be created "
        f"({complaint}): create it yourself, or run Trapline as another user."
    )
