"""The operating system user that PostgreSQL runs as: the current one, or a system user instead of root."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trapline.errors import EmbeddedPostgresError

_SYSTEM_USER = "trapline"
_CANDIDATES = (_SYSTEM_USER, "postgres")


@dataclass(frozen=True, slots=True)
class ServerUser:
    """The system user that runs the server and owns its data directory."""

    name: str
    uid: int
    gid: int

    @classmethod
    def of(cls, data: Path) -> "ServerUser":
        """Return the user for a data directory, which need not exist yet."""
        if os.geteuid() != 0:
            return cls(user_name(os.geteuid()), os.geteuid(), os.getegid())
        users = [user for name in _CANDIDATES if (user := _find(name))]
        if data.exists():
            uid = data.stat().st_uid
            users.sort(key=lambda user: user.uid != uid)
        return users[0] if users else _create()

    def subprocess_arguments(self) -> dict[str, Any]:
        """Return the arguments that make `subprocess` run a program as this user."""
        if os.geteuid() != 0:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": ()}


def user_name(uid: int) -> str:
    """Return a user's name, or its number: containers often have no name for it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _find(name: str) -> ServerUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return ServerUser(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _create() -> ServerUser:
    """Create the system user; another process may do so at once, so only the result counts."""
    useradd = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false"]
    adduser = ["adduser", "-S", "-D", "-H", "-s", "/bin/false"]
    command = useradd if shutil.which("useradd") else adduser
    try:
        done = subprocess.run([*command, _SYSTEM_USER], capture_output=True, text=True, check=False)
        complaint = done.stderr.strip()
    except OSError as error:
        complaint = str(error)
    if user := _find(_SYSTEM_USER):
        return user
    raise EmbeddedPostgresError(
        f"PostgreSQL does not run as root, and the system user {_SYSTEM_USER} could not be created "
        f"({complaint}): create it yourself, or run Trapline as another user."
    )
