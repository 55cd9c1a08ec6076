"""Runs the tests of the native library under gcc's sanitizers (`make check-native`).

The library is built into a copy of the package with the address and undefined-behaviour sanitizers;
a finding ends the run with a trace. Python's own allocator is switched off: it would hide overruns.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import hatch_build

_ROOT: Final = Path(__file__).parent.parent
_FLAGS: Final = (
    "-O1", "-g", "-UNDEBUG", "-U_FORTIFY_SOURCE", "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
    "-Wall", "-Wextra", "-Werror",
)  # fmt: skip
_TESTS: Final = (
    "native", "extract/html/test_links.py", "extract/metadata/test_page_metadata.py",
    "extract/main_content/test_accuracy.py", "extract/test_wild_html.py", "store/test_similarity.py",
)  # fmt: skip


def _runtime(name: str) -> str:
    """Python itself is not built with the sanitizers: their libraries must be preloaded."""
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _environment(package: Path) -> dict[str, str]:
    return {
        **os.environ,
        "LD_PRELOAD": f"{_runtime('libasan.so')} {_runtime('libubsan.so')}",
        "PYTHONPATH": str(package),
        "PYTHONMALLOC": "malloc",
        # Python frees little when it ends; the tests look for leaks themselves.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def _is_possible() -> bool:
    """Whether there is a gcc, and the libraries of its sanitizers; it names a path for those alone."""
    return shutil.which("gcc") is not None and Path(_runtime("libasan.so")).is_absolute()


def main() -> int:
    if not _is_possible():
        print("The native library was not checked: install gcc with its sanitizers (libasan).")
        return "--where-possible" not in sys.argv
    with TemporaryDirectory() as directory:
        root = Path(directory)
        shutil.copytree(_ROOT / "src", root / "src", ignore=shutil.ignore_patterns("*.so"))
        error = hatch_build.build(root, *_FLAGS)
        if error:
            sys.exit(f"The library could not be built with the sanitizers: {error}")
        tests = [str(_ROOT / "tests/unit" / name) for name in _TESTS]
        command = [sys.executable, "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider"]
        return subprocess.run(
            command, check=False, cwd=_ROOT, env=_environment(root / "src")
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
