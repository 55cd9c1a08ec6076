"""Discovery of a browser: the one that a setting names, else the lightest that is installed."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from trapline.errors import Unavailable

INSTALL: Final = "trapline browser install"

# The shell needs a third of the CPU time that a whole Chromium needs for a page.
_SHELLS: Final = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
    "headless_shell",
)
_WHOLE: Final = (
    "/usr/lib/chromium/chromium",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
_ENDPOINTS: Final = ("ws://", "wss://")


@dataclass(frozen=True, slots=True)
class BrowserBinary:
    """A browser: the path of a program, or the address of one that runs elsewhere."""

    location: str
    kind: Literal["shell", "chromium", "remote"]


class BrowserMissing(Unavailable):
    """No browser is installed here; `trapline browser install` installs one."""


def find_browser(setting: str | None = None) -> BrowserBinary | None:
    """Return the browser to use, or None where there is none or the setting is `none`.

    Raises BrowserMissing if the setting names a program that does not exist.
    """
    if setting is None:
        return _installed()
    if setting == "none":
        return None
    if setting.startswith(_ENDPOINTS):
        return BrowserBinary(setting, "remote")
    path = shutil.which(setting)
    if path is None:
        raise BrowserMissing(f"TRAPLINE_BROWSER names {setting}, which is not a program here.")
    return BrowserBinary(path, "shell" if "shell" in Path(path).name else "chromium")


def require_browser(setting: str | None = None) -> BrowserBinary:
    """Return the browser to use; raises BrowserMissing with a remedy."""
    binary = find_browser(setting)
    if binary is None:
        raise BrowserMissing(f"No browser is installed here; `{INSTALL}` installs one.")
    return binary


def install_command() -> list[str] | None:
    """Return the command of the system's package manager that installs a browser."""
    if shutil.which("apt-get") is not None:
        return ["apt-get", "install", "--yes", "--no-install-recommends", _debian_package()]
    if shutil.which("dnf") is not None:
        return ["dnf", "install", "--assumeyes", "chromium-headless"]
    if shutil.which("apk") is not None:
        return ["apk", "add", "chromium"]
    if sys.platform == "darwin" and shutil.which("brew") is not None:
        return ["brew", "install", "--cask", "chromium"]
    return None


def _debian_package() -> str:
    release = Path("/etc/os-release")
    text = release.read_text(encoding="utf-8") if release.exists() else ""
    return "chromium-browser" if "ID=ubuntu" in text else "chromium-headless-shell"


def _installed() -> BrowserBinary | None:
    for names, kind in ((_SHELLS, "shell"), (_WHOLE, "chromium")):
        for name in names:
            path = shutil.which(name)
            if path is not None and os.access(path, os.X_OK):
                return BrowserBinary(path, kind)  # type: ignore[arg-type]
    return None
