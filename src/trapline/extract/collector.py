"""Holds off Python's collector of cyclic garbage while a page is worked on.

A page is tens of thousands of small objects that live until it is done, and none of them are in
cycles: whoever looks for cycles among them looks in vain, for a tenth of the time a page takes.
"""

import gc
from collections.abc import Callable
from functools import wraps
from threading import Lock
from types import TracebackType
from typing import Final, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class HeldOff:
    """One for the process, for the collector is: may be entered again while it is, and by threads.

    Whoever leaves lets the collector go on, even if others are still inside: they are a little
    slower for it, whereas threads whose pages overlap for ever would otherwise keep all garbage.
    A collector that somebody else has switched off stays off.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._was_on = False

    def __call__(self, function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
        """Let a function run with the collector off."""

        @wraps(function)
        def inside(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
            with self:
                return function(*args, **kwargs)

        return inside

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._was_on = gc.isenabled()
            self._inside += 1
            gc.disable()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._was_on:
                gc.enable()


collector_held_off: Final = HeldOff()
