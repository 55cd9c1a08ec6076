"""Holds off Python's collector of cyclic garbage while a page is worked on.

A page is tens of thousands of small objects that live until it is done, and none of them are in
cycles: whoever looks for cycles among them looks in vain, for a tenth of the time a page takes.
"""

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def without_gc(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Let a function run with the collector off; it may call itself, and run in several threads.

    Whoever switched the collector off lets it go on, even if others are still inside: they are a
    little slower for it, whereas threads whose pages overlap for ever would otherwise keep all
    garbage. A collector that somebody else has switched off stays off.
    """

    @wraps(function)
    def inside(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return inside
