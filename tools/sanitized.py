"""Runs the tests of what is compiled with libraries that check every access (`make check-native`).

They are built into a copy of the package with gcc's address and undefined-behaviour
sanitizers; whatever they find ends the run with a trace. Python's own allocator is left out, for it
would hide the ends of what is allocated.
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
    "extract/test_compiled.py", "extract/test_compiled_refusals.py", "extract/test_compiled_links.py",
    "extract/test_compiled_markdown.py", "extract/test_compiled_words.py",
    "extract/test_compiled_network.py", "extract/test_marks.py", "extract/test_common_words.py",
    "extract/test_links.py", "extract/test_metadata.py", "extract/test_main_content.py",
    "extract/test_wild_html.py", "extract/test_charset.py", "extract/test_byline.py", "test_compiled_texts.py", "test_likeness.py",
)  # fmt: skip


def _runtime(name: str) -> str:
    """Python itself is not built with the sanitizers: what they need must be loaded before it."""
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _environment(package: Path) -> dict[str, str]:
    return {
        **os.environ,
        "LD_PRELOAD": f"{_runtime('libasan.so')} {_runtime('libubsan.so')}",
        "PYTHONPATH": str(package),
        "PYTHONMALLOC": "malloc",
        # Python leaves much behind when it ends; leaks are looked for by the tests themselves.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def main() -> int:
    with TemporaryDirectory() as room:
        root = Path(room)
        shutil.copytree(_ROOT / "src", root / "src", ignore=shutil.ignore_patterns("*.so"))
        error = hatch_build.build(root, *_FLAGS)
        if error:
            sys.exit(f"The libraries could not be built with their checks: {error}")
        tests = [str(_ROOT / "tests/unit" / name) for name in _TESTS]
        command = [sys.executable, "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider"]
        return subprocess.run(
            command, check=False, cwd=_ROOT, env=_environment(root / "src")
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
