"""The native library is built where there is a compiler, also by several at once, and never partly."""

import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hatch_build

# Writes its answer in two parts, and fails if the library was taken away meanwhile.
_SLOW = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf half > "$2"
sleep 0.3
[ -e '{library}' ] || {{ echo 'there is no library' >&2; exit 1; }}
printf whole >> "$2"
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library of another source."""
    library = tmp_path / hatch_build.LIBRARY
    library.parent.mkdir(parents=True)
    library.write_bytes(b"stale")
    return library


def compile_with(monkeypatch: pytest.MonkeyPatch, compiler: Path, script: str | None) -> None:
    if script is not None:
        compiler.write_text(script)
        compiler.chmod(0o755)
    monkeypatch.setitem(sysconfig.get_config_vars(), "CC", str(compiler))


def left(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_without_a_compiler(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_with(monkeypatch, tmp_path / "no-compiler", None)
    assert "no-compiler" in (hatch_build.build(tmp_path) or "")
    assert not library.exists()


def test_with_a_compiler_that_fails(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = '#!/bin/sh\nprintf "\\377 Python.h is not there" >&2\nexit 1\n'
    compile_with(monkeypatch, tmp_path / "failing", script)
    assert "Python.h is not there" in (hatch_build.build(tmp_path) or "")
    assert not library.exists()


def test_several_at_once(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_with(monkeypatch, tmp_path / "slow", _SLOW.format(library=library))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(hatch_build.build, [tmp_path] * 4)) == [None] * 4
    assert library.read_bytes() == b"halfwhole"
    assert left(tmp_path) == sorted([tmp_path / "slow", library])
