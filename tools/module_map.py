"""docs/modules.md: every module of the source with its first line, package by package."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "trapline"
_HEAD = """# Modules

Every module with its first line, package by package, in the order of the import rule
([architecture](architecture.md#imports-go-one-way)). Paths are below `src/trapline/`. Each file of named queries
(`<package>/sql/<topic>.sql`) has a generated module beside it, which is left out here. This page is generated
by `make docs`.
"""
_ORDER = (
    "",
    "app",
    "cli",
    "dashboard",
    "api",
    "pipeline",
    "queue",
    "frontier",
    "fetch",
    "extract",
    "archive",
    "store",
    "knowledge",
    "deliver",
    "ephemeral",
    "measure",
    "db",
    "native",
)


def modules_page() -> str:
    return "\n".join([_HEAD, *(line for package in packages() for line in _section(package))])


def packages() -> list[Path]:
    """Return all packages with modules of their own, in the order of the import rule."""
    found = {path.parent for path in SOURCE.rglob("*.py") if path.parent.name != "sql"}
    return sorted(found, key=lambda path: (_ORDER.index(_top(path)), path))


def _top(package: Path) -> str:
    parts = package.relative_to(SOURCE).parts
    return parts[0] if parts else ""


def _section(package: Path) -> Iterator[str]:
    name = package.relative_to(SOURCE).as_posix().removeprefix(".")
    yield f"## `{name or 'trapline'}`\n"
    yield f"{first_line(package / '__init__.py')}\n"
    modules = sorted(path for path in package.glob("*.py") if path.stem != "__init__")
    if modules:
        yield "| module | what it is |\n|---|---|"
        yield from (f"| `{path.name}` | {first_line(path)} |" for path in modules)
        yield ""


def first_line(path: Path) -> str:
    """Return the first paragraph of a module's docstring, as one line of a table."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(docstring.partition("\n\n")[0].split()).replace("|", "\\|")
