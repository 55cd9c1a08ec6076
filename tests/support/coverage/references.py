"""Whether the names in backticks exist; docs/coverage/README.md describes their syntax."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from tests.support.coverage.page import Row
from tests.support.coverage.schema import names

_PYTHON = re.compile(r"trapline(\.\w+)+")
_SQL = re.compile(r"[a-z_]\w*\.[a-z_]\w*(\.\w+)?")
_MAKE = re.compile(r"make ([\w-]+)")


class Tree:
    """A source tree that can be asked whether it holds something."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def problem(self, reference: str) -> str | None:
        """Return what is wrong with a reference, or None when it exists."""
        if "::" in reference:
            return self._test(*reference.split("::"))
        if "/" in reference:
            return self._path(reference)
        if make := _MAKE.fullmatch(reference):
            return self._target(make[1])
        if _PYTHON.fullmatch(reference):
            return _python(reference)
        if _SQL.fullmatch(reference):
            return self._sql(reference)
        return "is none of the forms that docs/coverage/README.md describes"

    def _path(self, reference: str) -> str | None:
        path = Path(reference)
        if path.is_absolute() or ".." in path.parts:
            return "is not a path inside the repository"
        return None if (self.root / path).exists() else "is not a file or directory"

    def _test(self, file: str, *scope: str) -> str | None:
        if problem := self._path(file):
            return problem
        tree: ast.AST = ast.parse((self.root / file).read_text(encoding="utf-8"))
        for name in scope:
            found = _definition(tree, name)
            if found is None:
                return f"{file} does not define {name}"
            tree = found
        return None

    def _target(self, target: str) -> str | None:
        makefile = self.root / "Makefile"
        text = makefile.read_text(encoding="utf-8") if makefile.exists() else ""
        is_there = re.search(rf"^{re.escape(target)}:", text, re.MULTILINE)
        return None if is_there else "is not a target of the Makefile"

    def _sql(self, reference: str) -> str | None:
        if self._sql_names is None:
            return "cannot be looked up: there is no schema.sql"
        return None if reference in self._sql_names else "is not in schema.sql"

    @cached_property
    def _sql_names(self) -> frozenset[str] | None:
        file = self.root / "src" / "trapline" / "db" / "sql" / "schema.sql"
        return names(file.read_text(encoding="utf-8")) if file.exists() else None


def _definition(tree: ast.AST, name: str) -> ast.AST | None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return next(
        (n for n in ast.iter_child_nodes(tree) if isinstance(n, kinds) and n.name == name), None
    )


def _python(reference: str) -> str | None:
    parts = reference.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            found: object = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise
            continue
        return _attribute(found, parts[length:])
    return "cannot be imported"


def _attribute(owner: object, path: list[str]) -> str | None:
    for name in path:
        # A field without a default is no attribute of its class, only an annotation.
        if inspect.isclass(owner) and any(
            name in vars(c).get("__annotations__", {}) for c in owner.__mro__
        ):
            return None if name == path[-1] else f"nothing can be said of what is inside {name}"
        if not hasattr(owner, name):
            return f"has no {name}"
        owner = getattr(owner, name)
    return None


def broken(rows: Iterable[Row], tree: Tree) -> Iterator[str]:
    for row in rows:
        for reference in row.references:
            if problem := tree.problem(reference):
                yield f"{row.location}: `{reference}` {problem}"
