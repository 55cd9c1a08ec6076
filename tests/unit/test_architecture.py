"""The maps in docs/architecture.md lead to files and schemas that exist, and leave out none."""

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


def tables() -> dict[str, set[str]]:
    """Return the tables of each schema, without the partitions that hold what fits no other."""
    found: dict[str, set[str]] = {}
    text = (SOURCE / "db" / "sql" / "schema.sql").read_text()
    for schema, table in re.findall(r"^CREATE TABLE (\w+)\.(\w+) \($", text, re.MULTILINE):
        if not table.endswith("_default"):
            found.setdefault(schema, set()).add(table)
    return found


def test_every_schema_with_tables_has_its_owner() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    part = text.partition("| schema | owner |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    named = {schema for row in rows for schema in re.findall(r"`(\w+)`", row)}
    assert named == {*tables(), "trapline", "auth"}


def test_packages_name_the_tables_that_they_own() -> None:
    said = {
        schema: set(re.findall(r"\w+", names))
        for path in SOURCE.glob("*/__init__.py")
        for schema, names in re.findall(r"Owns the schema `(\w+)`: ([^.]+)\.", path.read_text())
    }
    assert said == {schema: tables()[schema] for schema in said}
    assert set(tables()) - set(said) == {"queue", "tenancy"}
