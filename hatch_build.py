"""Builds the compiled reader of pages, where there is a C compiler; without one, none is needed.

The package works the same either way, see `trapline.extract.compiled`; `trapline doctor` says which.
"""

import shlex
import subprocess
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE: Final = Path("src/trapline/extract")
LIBRARY: Final = PACKAGE / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
# Pages are hostile: sums that outgrow their bits wrap instead of meaning anything at all, and what
# would overwrite the stack ends the process.
_SAFETY: Final = ("-fwrapv", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2")
_FLAGS: Final = ("-O3", *_SAFETY, "-fPIC", "-shared", "-fvisibility=hidden")
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
        build_data["artifacts"].append(str(LIBRARY))


def build(root: Path, *more: str) -> str | None:
    """Compile the library into its package; what went wrong, if something did.

    `more` are further flags for the compiler. Two may build at the same time, while a third runs what
    was there before: each writes a file of its own, which takes the library's place when it is whole.
    """
    library = root / LIBRARY
    sources = sorted(str(path) for path in (root / PACKAGE / "native").glob("*.c"))
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_paths()["include"]
    try:
        with TemporaryDirectory(prefix=".native-", dir=root) as room:
            part = Path(room, library.name)
            _run([*compiler, *_FLAGS, *more, f"-I{include}", *sources, "-o", str(part), "-lm"])
            part.replace(library)
    except (OSError, subprocess.SubprocessError) as error:
        library.unlink(missing_ok=True)  # It may be of another source.
        return str(getattr(error, "stderr", None) or error).strip()[-500:]
    return None


def _run(command: list[str]) -> None:
    subprocess.run(
        command, check=True, capture_output=True, text=True, errors="replace", timeout=_SECONDS
    )
