"""Bulk ingestion: files a minute from a folder to passages that are found, and kill -9 in between.

4,000 mixed files are made here: notes, pages, Word and Excel files, PDFs of 1 to 200 pages, and some
that are broken. `trapline ingest` takes them in on an empty home, with the light embedding model, then
a part of them with MiniLM on onnxruntime. Beside it stands what the reference system reckons for
itself: 10 files a minute with two replicas. Then a fresh run over others is killed in the middle and
taken up again. A run that takes longer than its time is paused, and its rate is that of what was in.

python -m benchmarks.ingest [--files 4000] [--sentence 150] [--killed 400]
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from benchmarks import report, versions
from tests.site import office
from tests.site.pdf import pdf
from trapline.knowledge.embedding import model_install
from trapline.settings import EmbeddingSettings

REFERENCE_FILES_A_MINUTE = 10
REFERENCE = {
    "in": 4000.0,
    "failed": 0.0,
    "seconds": 60 * 4000 / REFERENCE_FILES_A_MINUTE,
}
MEGABYTE = 1 << 20
# Seconds after which a run is paused, so that all of it ends within six minutes.
WHOLE, PART = 210.0, 90.0
PROGRAM = Path(sys.executable).with_name("trapline")
WORDS = (  # noqa: SIM905 (a line of words reads better)
    "clock pivot bushing escapement anchor pendulum spring wheel arbor plate pillar movement strike"
    " repair bench customer invoice delivery warranty part number order price euro week month report"
    " measure minute error late early oil clean polish replace adjust test note remark the of and to"
    " in for with on at by from is was are were has had not but or as it this that which"
).split()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--sentence", type=int, default=150)
    parser.add_argument("--killed", type=int, default=400)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trapline-bench-") as directory:
        root = Path(directory)
        root.chmod(0o755)
        kinds = make(root / "files", asked.files, random.Random(1))
        whole = measured(root / "home", root / "files", WHOLE)
        make(root / "part", asked.sentence, random.Random(3))
        model = model_install.install(EmbeddingSettings(home=root / "model"))
        better = measured(
            root / "better",
            root / "part",
            PART,
            TRAPLINE_EMBED_ONNX=str(model),
            TRAPLINE_EMBED_THREADS="2",
        )
        make(root / "some", asked.killed, random.Random(2))
        killed = interrupted(root / "other", root / "some")
    rates = {name: 60 * run["in"] / run["seconds"] for name, run in (("", whole), ("m", better))}
    tools = ("kreuzberg", "pypdfium2", "turbohtml", "wordllama", "onnxruntime")
    report(
        f"{sum(kinds.values())} files: {', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}."
        f" {versions(*tools)}",
        [
            _row("light model", whole),
            _row("MiniLM, two threads", better),
            _row("as the reference reckons", REFERENCE),
            _row("killed with -9 on the way, resumed", killed),
        ],
        {
            "files_per_minute": round(rates[""], 1),
            "vs_reference": round(rates[""] / REFERENCE_FILES_A_MINUTE, 2),
            "passages_per_second": round(whole["passages"] / whole["seconds"], 1),
            "seconds_per_file": round(whole["seconds"] / max(whole["in"], 1), 4),
            "left_when_paused": whole["left"],
            "failed_named": whole["failed"],
            "peak_pss_mb": round(whole["peak_mb"]),
            "minilm_files_per_minute": round(rates["m"], 1),
            "minilm_vs_reference": round(rates["m"] / REFERENCE_FILES_A_MINUTE, 2),
            "minilm_passages_per_second": round(better["passages"] / better["seconds"], 1),
            "minilm_left_when_paused": better["left"],
            "minilm_peak_pss_mb": round(better["peak_mb"]),
            "killed_left": killed["left at the kill"],
            "killed_lost": killed["lost"],
            "killed_twice": killed["twice"],
        },
    )


def _row(what: str, run: Mapping[str, float]) -> dict[str, object]:
    """A line of the table; what was not measured stays empty."""
    seconds, passages, peak = run.get("seconds"), run.get("passages"), run.get("peak_mb")
    rate = 60 * run["in"] / seconds if seconds else None
    return {
        "what": what,
        "files in": int(run["in"]),
        "failed": int(run["failed"]),
        "seconds": round(seconds, 1) if seconds else "",
        "files/minute": rate or "",
        "÷ reference": rate / REFERENCE_FILES_A_MINUTE if rate else "",
        "passages/s": passages / seconds if seconds and passages else "",
        "peak MB": round(peak) if peak else "",
    }


def make(folder: Path, count: int, rng: random.Random) -> dict[str, int]:
    """Write mixed files; return how many there are of each kind."""
    folder.mkdir()
    kinds: dict[str, int] = {}
    for number in range(count):
        kind, body = one(number, rng)
        kinds[kind] = kinds.get(kind, 0) + 1
        (folder / f"{number:05}.{kind.removeprefix('broken ')}").write_bytes(body)
    return kinds


def one(number: int, rng: random.Random) -> tuple[str, bytes]:
    """Make one file: 55 % notes, 15 % pages, 12 % Word, 8 % Excel, 9 % PDF, 1 % broken."""
    share, title = rng.random(), f"{' '.join(rng.sample(WORDS, 3)).title()} {number}"
    if share < 0.55:
        text = f"# {title}\n\n" + "\n\n".join(paragraph(rng) for _ in range(rng.randint(1, 12)))
        return "md", text.encode()
    if share < 0.70:
        body = "".join(f"<p>{paragraph(rng)}</p>" for _ in range(rng.randint(3, 25)))
        page = f"<html><head><title>{title}</title></head><body><nav><a href='/'>Home</a></nav>"
        return "html", f"{page}<main><h1>{title}</h1>{body}</main></body></html>".encode()
    if share < 0.82:
        return "docx", office.docx(title, [paragraph(rng) for _ in range(rng.randint(2, 40))])
    if share < 0.90:
        rows = [[*rng.sample(WORDS, 4), rng.randint(1, 999)] for _ in range(rng.randint(5, 120))]
        return "xlsx", office.xlsx({"Sheet": rows})
    if share < 0.99:
        pages = min(200, int(rng.paretovariate(0.8)))
        return "pdf", pdf([[title, *lines(rng)] for _ in range(pages)], title)
    return "broken pdf", b"%PDF-1.7\n" + rng.randbytes(200)


def paragraph(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(20, 90))).capitalize() + "."


def lines(rng: random.Random) -> list[str]:
    return [" ".join(rng.choices(WORDS, k=12)) for _ in range(rng.randint(10, 40))]


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    return kept | {"TRAPLINE_HOME": str(home)}


def measured(home: Path, folder: Path, longest: float, **variables: str) -> dict[str, float]:
    """Take in a folder as a user does; the database is started and set up beforehand."""
    own = environment(home) | variables
    subprocess.run([PROGRAM, "apps", "create", "bench"], env=own, check=True, capture_output=True)
    started = time.perf_counter()
    process = subprocess.Popen(
        [PROGRAM, "ingest", str(folder), "--app", "bench", "--json"],
        env=own,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    peak = [0.0]
    watching = threading.Thread(target=watch, args=(process.pid, peak), daemon=True)
    watching.start()
    out = _within(process, longest)
    seconds = time.perf_counter() - started
    watching.join(5)
    told = json.loads(out)
    passages = int(asked_of(home, "SELECT count(*) FROM knowledge.chunk"))
    return {
        "in": told["job"]["completed"],
        "failed": len(told["failed"]) + len(told["refused"]),
        "left": told["job"]["remaining"],
        "seconds": seconds,
        "peak_mb": peak[0],
        "passages": passages,
    }


def _within(process: "subprocess.Popen[bytes]", seconds: float) -> bytes:
    """Wait for the command's answer; one that takes too long is paused, as Ctrl-C does."""
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=60)[0]


def watch(pid: int, peak: list[float]) -> None:
    """Note the most memory that a process, its children and its PostgreSQL had."""
    try:
        while True:
            parent = psutil.Process(pid)
            family = [parent, *parent.children(recursive=True)]
            total = 0.0
            for process in family:
                try:
                    total += process.memory_full_info().pss / MEGABYTE
                except psutil.Error:
                    continue
            peak[0] = max(peak[0], total)
            time.sleep(1)
    except psutil.Error:
        return


def asked_of(home: Path, statement: str) -> str:
    """Ask the home's own PostgreSQL, which is started for it if need be."""
    found = subprocess.run(
        [PROGRAM, "db", "psql", "--", "-Atc", statement],
        env=environment(home),
        check=True,
        capture_output=True,
    )
    return found.stdout.decode().strip()


def interrupted(home: Path, folder: Path) -> dict[str, int]:
    """Kill the command in the middle, take it up again, and compare what there is with the files."""
    command = [PROGRAM, "ingest", str(folder)]
    subprocess.run(
        [PROGRAM, "apps", "list"], env=environment(home), check=True, capture_output=True
    )
    process = subprocess.Popen(
        command, env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    files = len(list(folder.iterdir()))
    deadline = time.monotonic() + 60
    while int(asked_of(home, "SELECT count(*) FROM queue.done")) < files // 4:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline, "a quarter was not in within a minute"
        time.sleep(0.1)
    process.kill()
    process.wait()
    job_id, left = asked_of(home, "SELECT id, remaining FROM queue.job").split("|")
    again = subprocess.run(
        [PROGRAM, "ingest", "--resume", job_id, "--json"],
        env=environment(home),
        capture_output=True,
        check=False,
        timeout=120,
    )
    job = json.loads(again.stdout)["job"]
    twice = asked_of(home, "SELECT count(*) - count(DISTINCT uri) FROM knowledge.entry")
    return {
        "files": files,
        "left at the kill": int(left),
        "in": job["completed"],
        "failed": job["failed"],
        "lost": files - job["completed"] - job["failed"],
        "twice": int(twice),
    }


if __name__ == "__main__":
    main()
