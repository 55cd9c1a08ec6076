"""The map of modules and the table of schemas leave out none."""

import re

from tests.support.paths import DOCS, SOURCE
from tools.module_map import first_line


def test_every_module_says_what_it_is() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if path.parent.name != "sql"]
    assert [path for path in modules if not first_line(path)] == []
    listed = (DOCS / "modules.md").read_text()
    assert [
        path for path in modules if f"`{path.name}`" not in listed and path.stem != "__init__"
    ] == []


def tables() -> dict[str, set[str]]:
    """Return the tables of each schema, without the partitions that hold what fits no other."""
    found: dict[str, set[str]] = {}
    text = (SOURCE / "db" / "sql" / "schema.sql").read_text()
    for schema, table in re.findall(r"^CREATE TABLE (\w+)\.(\w+) \($", text, re.MULTILINE):
        if not table.endswith("_default"):
            found.setdefault(schema, set()).add(table)
    return found


def test_every_schema_with_tables_has_its_owner() -> None:
    text = (DOCS / "architecture.md").read_text()
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
