"""The map in docs/architecture.md leads to files that exist, and to every package."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "trapline"
_ROW = re.compile(r"^\| [^|`]+ \| (`[^|]+`) \|$", re.MULTILINE)


def mapped() -> set[str]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    part = text.partition("## Where is …")[2].partition("\n## ")[0]
    return {path for row in _ROW.findall(part) for path in re.findall(r"`([^`]+)`", row)}


def test_every_path_exists() -> None:
    assert {path for path in mapped() if not (SOURCE / path).exists()} == set()


def test_no_package_is_left_out() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    found = {path.partition("/")[0] for path in mapped()}
    # Commands and short-lived values are said in words, the dashboard is to come.
    assert packages - found == {"cli", "dashboard", "ephemeral"}
