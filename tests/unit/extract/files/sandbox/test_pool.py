import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import document_files
from trapline.extract.files.kinds import Kind
from trapline.extract.files.reader_result import Limits, UnreadableFile
from trapline.extract.files.sandbox.pool import Pool

PDF = document_files.pdf([[(72, 700, 11, "hello")]])
LIMITS = Limits()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(size=2)
    yield made
    made.close()


def idle_pids(pool: Pool) -> list[int]:
    return [process.pid for process in pool._idle]


def test_a_process_is_kept_warm_and_ended_on_close(pool: Pool) -> None:
    assert idle_pids(pool) == []
    for _ in range(3):
        assert [block.text for block in pool.read(PDF, Kind.PDF, LIMITS).blocks if block.text] == [
            "hello"
        ]
    (pid,) = idle_pids(pool)
    pool.close()
    assert not is_running(pid)
    assert pool.read(PDF, Kind.PDF, LIMITS).pages == 1


def test_a_killed_process_is_one_error_and_then_replaced(pool: Pool) -> None:
    pool.read(PDF, Kind.PDF, LIMITS)
    (pid,) = idle_pids(pool)
    os.kill(pid, signal.SIGKILL)
    with suppress(UnreadableFile):
        # It may have died only after it was found alive.
        pool.read(PDF, Kind.PDF, LIMITS)
    assert pool.read(PDF, Kind.PDF, LIMITS).pages == 1
    assert pid not in idle_pids(pool)


def test_a_slow_file_is_cut_off(pool: Pool) -> None:
    many = document_files.pdf(
        [[(72, 700 - n, 11, "word " * 20) for n in range(60)] for _ in range(400)]
    )
    pool.read(PDF, Kind.PDF, LIMITS)
    (pid,) = idle_pids(pool)
    with pytest.raises(UnreadableFile, match=r"more than 0\.05 seconds"):
        pool.read(many, Kind.PDF, Limits(seconds=0.05))
    assert not is_running(pid)
    assert idle_pids(pool) == []


def test_memory_is_bounded(pool: Pool) -> None:
    pool.read(document_files.docx(""), Kind.DOCX, LIMITS)
    (pid,) = idle_pids(pool)
    status = Path(f"/proc/{pid}/status").read_text()
    now = int(status.partition("VmSize:")[2].split()[0]) * 1024
    many = document_files.docx("<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 60_000)
    # Wherever the memory ends, it is said.
    for more in (20_000_000, 300_000, 1_000_000, 2_000_000, 4_000_000, 7_000_000):
        with pytest.raises(UnreadableFile, match="more memory than the limit"):
            pool.read(many, Kind.DOCX, Limits(memory_bytes=now + more))
    assert len(pool.read(many, Kind.DOCX, LIMITS).blocks) == 60_000


async def test_threads_of_an_asyncio_program_share_few_processes(pool: Pool) -> None:
    readings = await asyncio.gather(
        *(asyncio.to_thread(pool.read, PDF, Kind.PDF, LIMITS) for _ in range(12))
    )
    assert [reading.pages for reading in readings] == [1] * 12
    assert 1 <= len(idle_pids(pool)) <= 2


def test_no_process_outlives_its_parent() -> None:
    program = """
        import os, sys
        from tests.support import document_files
        from trapline.extract.files.sandbox import pool
        from trapline.extract.files.kinds import Kind
        from trapline.extract.files.reader_result import Limits
        pool.read_in_sandbox(document_files.pdf([[(72, 700, 11, "x")]]), Kind.PDF, Limits())
        print(pool._pool._idle[0].pid, flush=True)
        if sys.argv[1] == "killed":
            os.kill(os.getpid(), 9)
    """
    for ending in ("killed", "ended"):
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), ending],
            capture_output=True,
            text=True,
            check=False,
        )
        pid = int(run.stdout)
        deadline = time.monotonic() + 20
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not is_running(pid), ending


def test_the_worker_loads_only_what_files_need() -> None:
    program = "import sys, trapline.extract.files.sandbox.worker; print('numpy' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"
