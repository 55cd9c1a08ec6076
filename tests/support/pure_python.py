"""Modules without their compiled functions, beside those that have them (PEP 399).

As `import_fresh_module` of CPython's own tests: modules are imported a second time while the library
is blocked. `needs_native` skips tests of the library where there is none.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import trapline
from trapline import native

_LIBRARY = "trapline.native._native"
_PACKAGES = ("native", "extract", "store")
_pure: dict[str, Any] = {_LIBRARY: None}

needs_native = pytest.mark.skipif(
    not native.available,
    reason="There is no native library: install a C compiler, then make setup.",
)


def pure_python(name: str) -> ModuleType:
    """A module of `trapline.extract` or `trapline.store` without the native library.

    Classes of these packages differ from the imported ones; those of `trapline.model` do not.
    """
    ours = _take_out()
    _put_in(_pure)
    try:
        return import_module(name)
    finally:
        _pure.update(_take_out())
        _put_in(ours)


def _take_out() -> dict[str, ModuleType]:
    """Forget the packages: `from trapline import …` takes an attribute before it imports."""
    prefixes = tuple(f"trapline.{package}" for package in _PACKAGES)
    for package in _PACKAGES:
        vars(trapline).pop(package, None)
    names = [name for name in sys.modules if name.startswith(prefixes)]
    return {name: sys.modules.pop(name) for name in names}


def _put_in(modules: dict[str, ModuleType]) -> None:
    sys.modules.update(modules)
    for package in _PACKAGES:
        if f"trapline.{package}" in modules:
            setattr(trapline, package, modules[f"trapline.{package}"])
