"""Debian packages that tests need: installed where the tests run as root, named in the summary elsewhere.

`require("nginx")` in a fixture returns once the package is installed. Where that is impossible the
test is skipped with the command that installs it; in CI a skipped test fails.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import pytest

_ABSENT: Final = "Debian packages are missing: "
_LOCK: Final = Path(tempfile.gettempdir()) / "trapline-tests-apt.lock"
_SERVICE_POLICY: Final = Path("/usr/sbin/policy-rc.d")
_MINUTES: Final = 10


def require(*packages: str) -> None:
    """Install the packages that are missing; skip the test if that fails."""
    failure = _install(packages)
    if failure is not None:
        command = f"apt-get install --no-install-recommends {' '.join(_missing(packages))}"
        pytest.skip(f"{_ABSENT}{command} ({failure})")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the packages that were missing, with the number of tests that need them."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    texts = [reason.partition(_ABSENT)[2] for reason in reasons if _ABSENT in reason]
    for text in sorted(set(texts)):
        terminalreporter.write_line(f"{texts.count(text)} tests skipped; {_ABSENT}{text}")


def _missing(packages: tuple[str, ...]) -> list[str]:
    return [package for package in packages if not _installed(package)]


def _installed(package: str) -> bool:
    if shutil.which("dpkg-query") is None:
        return False
    command = ["dpkg-query", "-W", "-f=${db:Status-Status}", package]
    status = subprocess.run(command, capture_output=True, text=True, check=False)
    return status.stdout == "installed"


@cache
def _install(packages: tuple[str, ...]) -> str | None:
    """Return why the packages cannot be installed, or None once they are; try once a process."""
    if not _missing(packages):
        return None
    if shutil.which("apt-get") is None:
        return "this system has no apt-get"
    if os.geteuid() != 0:
        return "not running as root"
    with _exclusively(), _no_services_started():
        for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
            if not _missing(packages):  # another process has installed them
                return None
            failure = _apt_get(command)
    return failure if _missing(packages) else None


def _apt_get(arguments: list[str]) -> str | None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=60 * _MINUTES,
        )
    except subprocess.TimeoutExpired:
        return f"apt-get took longer than {_MINUTES} minutes"
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]


@contextmanager
def _exclusively() -> Iterator[None]:
    """Hold the lock of all test processes on this machine."""
    with _LOCK.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _no_services_started() -> Iterator[None]:
    """Keep Debian from starting the daemons that it installs; tests start their own."""
    if _SERVICE_POLICY.exists():
        yield
        return
    _SERVICE_POLICY.write_text("#!/bin/sh\nexit 101\n")
    _SERVICE_POLICY.chmod(0o755)
    try:
        yield
    finally:
        _SERVICE_POLICY.unlink()
