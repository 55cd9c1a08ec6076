"""Memory of a long-lived process: the garbage collector's thresholds and malloc's.

Both are set once, when a worker starts.
"""

import ctypes
import gc
from contextlib import suppress
from functools import cache
from typing import Final

# New objects after which the collector runs: a few pages' worth, where Python's default is 700.
_NEW_OBJECTS: Final = 5_000
# Parameters of glibc's mallopt: the free memory that stays with the process, and the size from which a
# block is mapped by itself.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_FREE: Final = 64 << 20
_LARGEST_IN_HEAP: Final = 32 << 20


@cache
def spare_collector() -> None:
    """Exempt all loaded objects from garbage collection, and collect the others less often.

    Otherwise each full collection walks half a million objects that stay until the process ends.
    """
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 20)


@cache
def keep_freed_memory() -> None:
    """Let malloc keep what a large page took, up to a bound.

    Returned to the system, it would come back page by page, each cleared first: twelve thousand page
    faults for a page of 2.5 MB.
    """
    with suppress(AttributeError, OSError):  # Only glibc has it.
        options = ctypes.CDLL(None).mallopt
        options(_TRIM_THRESHOLD, _KEPT_FREE)
        options(_MMAP_THRESHOLD, _LARGEST_IN_HEAP)
