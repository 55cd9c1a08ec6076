"""Builds the C counterparts of Python functions, where there is a C compiler; none is needed.

The package works the same without them, see `trapline.native`; `trapline doctor` says which is in use.
"""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMIT_FILE: Final = Path("src/trapline/commit.txt")
SOURCES: Final = Path("src/trapline/native")
LIBRARY: Final = SOURCES / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
# Pages are hostile: signed overflow wraps instead of being undefined, and a stack overflow ends the
# process.
_SAFETY: Final = ("-fwrapv", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2")
# Without NDEBUG, Python's headers check the type of nearly every object; the sanitized build does.
_FLAGS: Final = ("-O3", "-DNDEBUG", *_SAFETY, "-fPIC", "-shared", "-fvisibility=hidden")
# It takes seconds; on a machine that is busy with much else, minutes.
_SECONDS: Final = 600


class NativeLibrary(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are gathered, for an editable installation too."""
        if version != "editable":
            self._record_commit(build_data)
        if self.target_name != "wheel":
            return
        if os.environ.get("TRAPLINE_NATIVE") == "off":
            return
        error = build(Path(self.root))
        if error:
            self.app.display_warning(f"Pages will be read by Python alone: {error}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(str(LIBRARY))

    def _record_commit(self, build_data: dict[str, Any]) -> None:
        """Put the commit into the distribution; a wheel made of an sdist has the sdist's."""
        path = Path(self.root, COMMIT_FILE)
        if Path(self.root, ".git").exists():
            command = ("git", "-C", self.root, "rev-parse", "--short=10", "HEAD")
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            path = Path(self.directory, "commit.txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(answer.stdout)
        if path.exists() and path.read_text().strip():
            inside = COMMIT_FILE if self.target_name == "sdist" else COMMIT_FILE.relative_to("src")
            build_data["force_include"][str(path)] = str(inside)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was written beside the distribution."""
        del version, build_data, artifact_path
        Path(self.directory, "commit.txt").unlink(missing_ok=True)


def build(root: Path, *more: str) -> str | None:
    """Compile the library into its package; return the error, if there was one.

    `more` are further compiler flags. Builds may run at the same time, and beside a process that uses
    the old library: each writes a file of its own and renames it when it is complete.
    """
    try:
        _compile(root, *more)
    except (OSError, subprocess.SubprocessError) as error:
        (root / LIBRARY).unlink(missing_ok=True)  # It may be of another source.
        return str(getattr(error, "stderr", None) or error).strip()[-500:]
    return None


def _compile(root: Path, *more: str) -> None:
    sources = sorted(str(path) for path in (root / SOURCES).glob("*.c"))
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_paths()["include"]
    with TemporaryDirectory(prefix=".native-", dir=root) as directory:
        output = Path(directory, LIBRARY.name)
        _run([*compiler, *_FLAGS, *more, f"-I{include}", *sources, "-o", str(output), "-lm"])
        output.replace(root / LIBRARY)


def _run(command: list[str]) -> None:
    subprocess.run(
        command, check=True, capture_output=True, text=True, errors="replace", timeout=_SECONDS
    )
