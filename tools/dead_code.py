"""Finds code in src that nothing but tests uses (`make check`): vulture, less what dead_code.toml allows.

Vulture knows names, not types: code whose name is also used elsewhere is not found.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from vulture.core import Item, Vulture

_ROOT: Final = Path(__file__).parent.parent
_SOURCE: Final = _ROOT / "src"
_ALLOWED: Final = Path(__file__).with_name("dead_code.toml")
# Handlers and commands, validators: the framework calls what is decorated.
_DECORATORS: Final = ["@*router.*", "@*.command", "@*.group", "@click.*", "@*_validator", "@*.result_callback"]  # fmt: skip


def _is_judged(item: Item) -> bool:
    """Constants, functions and classes; a field may be read by whatever serialises it."""
    is_field = item.typ in {"variable", "attribute"} and not item.name.isupper()
    return not is_field and Path(item.filename).is_relative_to(_SOURCE)


def _problems() -> Iterator[str]:
    search = Vulture(ignore_decorators=_DECORATORS)
    search.scavenge([_SOURCE, _ROOT / "tools"])
    unused = {item.name: item for item in search.get_unused_code() if _is_judged(item)}
    allowed = {name for names in tomllib.loads(_ALLOWED.read_text()).values() for name in names}
    for name in sorted(unused.keys() - allowed):
        item = unused[name]
        place = f"{Path(item.filename).relative_to(_ROOT)}:{item.first_lineno}"
        yield f"{place}: {item.typ} {name} is used by tests at most: remove it with its tests."
    for name in sorted(allowed - unused.keys()):
        yield f"{_ALLOWED.name}: {name} is used, or is gone: remove the entry."


def main() -> int:
    problems = list(_problems())
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
