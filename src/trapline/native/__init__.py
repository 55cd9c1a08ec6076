"""Compiled counterparts of Python functions (PEP 399), where the package was built with a C compiler.

The Python module is the specification, and what a machine without a compiler runs. It replaces its
functions in its last lines:

    if native.available:
        utf8 = native.library.utf8

Each C file here is named after the module that it serves; `hatch_build.py` builds them all into one
library. TRAPLINE_NATIVE=off leaves the library out: a switch for tests and for finding faults, no
setting.
"""

import os
from importlib.util import find_spec
from typing import Final

available: Final = (
    os.environ.get("TRAPLINE_NATIVE") != "off" and find_spec("trapline.native._native") is not None
)

if available:
    from trapline.native import _native as library

__all__ = ["available", "library"]
