"""Builds what is compiled of some packages, where there is a C compiler; without one, none is needed.

The packages work the same either way, see `trapline.extract.compiled`; `trapline doctor` says which.
"""

import shlex
import subprocess
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_LIBRARY: Final = f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
PACKAGES: Final = (Path("src/trapline/extract"), Path("src/trapline/store"))
LIBRARIES: Final = tuple(package / _LIBRARY for package in PACKAGES)
# Pages are hostile: sums that outgrow their bits wrap instead of meaning anything at all, and what
# would overwrite the stack ends the process.
_SAFETY: Final = ("-fwrapv", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2")
# Python's own headers ask the type of nearly every object that they are handed; with the sanitizers
# they still do.
_FLAGS: Final = ("-O3", "-DNDEBUG", *_SAFETY, "-fPIC", "-shared", "-fvisibility=hidden")
_SECONDS: Final = 120


class CompiledReader(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are gathered, for an editable installation too."""
        del version
        if self.target_name != "wheel":
            return
        error = build(Path(self.root))
        if error:
            self.app.display_warning(f"Pages will be read by Python alone: {error}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].extend(map(str, LIBRARIES))


def build(root: Path, *more: str) -> str | None:
    """Compile each library into its package; what went wrong, if something did.

    `more` are further flags for the compiler. Two may build at the same time, while a third runs what
    was there before: each writes a file of its own, which takes the library's place when it is whole.
    """
    try:
        for package in PACKAGES:
            _build(root, package, *more)
    except (OSError, subprocess.SubprocessError) as error:
        for library in LIBRARIES:
            (root / library).unlink(missing_ok=True)  # It may be of another source.
        return str(getattr(error, "stderr", None) or error).strip()[-500:]
    return None


def _build(root: Path, package: Path, *more: str) -> None:
    sources = sorted(str(path) for path in (root / package / "native").glob("*.c"))
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_paths()["include"]
    with TemporaryDirectory(prefix=".native-", dir=root) as room:
        part = Path(room, _LIBRARY)
        _run([*compiler, *_FLAGS, *more, f"-I{include}", *sources, "-o", str(part), "-lm"])
        part.replace(root / package / _LIBRARY)


def _run(command: list[str]) -> None:
    subprocess.run(
        command, check=True, capture_output=True, text=True, errors="replace", timeout=_SECONDS
    )
