"""Compiled libraries are built where they can be, by several at once, and are never half there."""

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
def libraries(tmp_path: Path) -> list[Path]:
    """Libraries of another source."""
    libraries = [tmp_path / library for library in hatch_build.LIBRARIES]
    for library in libraries:
        library.parent.mkdir(parents=True)
        library.write_bytes(b"stale")
    return libraries


def compile_with(monkeypatch: pytest.MonkeyPatch, compiler: Path, script: str | None) -> None:
    if script is not None:
        compiler.write_text(script)
        compiler.chmod(0o755)
    monkeypatch.setitem(sysconfig.get_config_vars(), "CC", str(compiler))


def left(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_without_a_compiler(
    tmp_path: Path, libraries: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_with(monkeypatch, tmp_path / "no-compiler", None)
    assert "no-compiler" in (hatch_build.build(tmp_path) or "")
    assert not any(library.exists() for library in libraries)


def test_with_a_compiler_that_fails(
    tmp_path: Path, libraries: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = '#!/bin/sh\nprintf "\\377 Python.h is not there" >&2\nexit 1\n'
    compile_with(monkeypatch, tmp_path / "failing", script)
    assert "Python.h is not there" in (hatch_build.build(tmp_path) or "")
    assert not any(library.exists() for library in libraries)


def test_several_at_once(
    tmp_path: Path, libraries: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_with(monkeypatch, tmp_path / "slow", _SLOW.format(library=libraries[0]))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(hatch_build.build, [tmp_path] * 4)) == [None] * 4
    assert all(library.read_bytes() == b"halfwhole" for library in libraries)
    assert left(tmp_path) == sorted([tmp_path / "slow", *libraries])
