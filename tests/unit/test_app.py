"""The process of a worker: its memory, and what it imports."""

import subprocess
import sys

PROGRAM = """
import resource
from trapline.app.process_memory import keep_freed_memory

def faults(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytes(bytearray(size))
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
print(faults(20_000_000), faults(20_000_000))
"""


def test_memory_is_taken_from_the_system_once() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    first, second = map(int, told.stdout.split())
    assert first > 4_000
    assert second < first / 10


def test_a_worker_without_an_api_imports_no_firecrawl_api() -> None:
    program = (
        "import sys; from trapline.cli.queue import work;"
        "print([name for name in sys.modules if name.startswith('trapline.api.firecrawl')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"
