"""A wheel installed into an empty environment crawls a site, without this checkout."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.site.site import LOOPBACK, Site
from trapline import native

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that `make dist` writes."""
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "tools.dist", target]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return target


def installed(wheel: Path, directory: Path) -> Path:
    """Install the wheel with the locked versions of its dependencies; return its program."""
    constraints = directory / "constraints.txt"
    export = ["export", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "-q"]
    uv(*export, "--project", ROOT, "-o", constraints)
    uv("venv", "-q", "--python", sys.executable, directory / "venv")
    python = directory / "venv" / "bin" / "python"
    uv("pip", "install", "-q", "--python", python, "-c", constraints, wheel)
    return python.with_name("trapline")


def uv(*arguments: str | Path) -> None:
    subprocess.run([UV, *arguments], check=True, cwd="/")


def run(program: Path, home: Path, *arguments: str) -> str:
    kept = ("PATH", "LANG", "LC_ALL")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {"TRAPLINE_HOME": str(home), "TRAPLINE_ALLOW_NETS": LOOPBACK, "HOME": str(home)}
    process = subprocess.run(
        [program, *arguments], env=environment, cwd="/", capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        pytest.param("*-none-any.whl", "pure Python", id="pure"),
        pytest.param(
            "*manylinux*.whl",
            "native library",
            id="compiled",
            marks=pytest.mark.skipif(not native.available, reason="needs a C compiler"),
        ),
    ],
)
def test_a_wheel_crawls(
    distributions: Path, tmp_path: Path, site: Site, pattern: str, kind: str
) -> None:
    (wheel,) = distributions.glob(pattern)
    program = installed(wheel, tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    assert run(program, home, "--version").strip().endswith(kind)
    output = tmp_path / "pages.jsonl"
    run(program, home, "crawl", site.url, "--limit", "3", "--jsonl", str(output))
    pages = [json.loads(line) for line in output.read_text().splitlines()]
    assert len(pages) == 3
    assert all(page["markdown"] for page in pages)


def test_an_sdist_has_its_commit_and_no_library(distributions: Path) -> None:
    (path,) = distributions.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames()]
    assert "src/trapline/native/network.c" in names
    assert not [name for name in names if name.endswith((".so", ".pyc"))]
    assert ("src/trapline/commit.txt" in names) == (ROOT / ".git").exists()
