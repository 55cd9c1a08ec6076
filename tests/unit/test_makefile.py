"""`make test` runs every test that there is."""

import re
import subprocess

import pytest

from tests.support.paths import ROOT


def would_run(target: str) -> set[str]:
    """Return the directories that a target gives to pytest, without running it."""
    plan = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    calls = re.findall(r"pytest ((?:tests/\w+ )+)", plan)
    return {directory for call in calls for directory in call.split()}


@pytest.fixture(scope="module")
def written() -> set[str]:
    """The directories below tests/ that hold tests."""
    return {
        path.relative_to(ROOT).parts[0] + "/" + path.relative_to(ROOT).parts[1]
        for path in (ROOT / "tests").rglob("test_*.py")
    }


def test_make_test_runs_all(written: set[str]) -> None:
    assert would_run("test") == written


def test_unit_tests_and_those_with_servers_are_apart(written: set[str]) -> None:
    assert would_run("test-unit") == {"tests/unit"}
    assert would_run("test-integration") == written - {"tests/unit"}
