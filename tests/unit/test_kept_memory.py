"""What a large page took is there for the next one."""

import subprocess
import sys

PROGRAM = """
import resource
from trapline import app

def faults(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytes(bytearray(size))
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

app.keep_memory()
print(faults(20_000_000), faults(20_000_000))
"""


def test_memory_is_taken_from_the_system_once() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    first, second = map(int, told.stdout.split())
    assert first > 4_000
    assert second < first / 10
