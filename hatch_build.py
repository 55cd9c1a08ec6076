"""Builds the compiled reader of pages, where there is a C compiler; without one, none is needed.

The package works the same either way, see `trapline.extract.compiled`; `trapline doctor` says which.
"""

import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE: Final = Path("src/trapline/extract")
LIBRARY: Final = PACKAGE / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
_FLAGS: Final = ("-O3", "-fPIC", "-shared", "-fvisibility=hidden")
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


def build(root: Path) -> str | None:
    """Compile the library into its package; what went wrong, if something did."""
    library, part = root / LIBRARY, root / f"{LIBRARY}.part"
    library.unlink(missing_ok=True)
    sources = sorted(str(path) for path in (root / PACKAGE / "native").glob("*.c"))
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_paths()["include"]
    command = [*compiler, *_FLAGS, f"-I{include}", *sources, "-o", str(part), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        return str(getattr(error, "stderr", None) or error).strip()[-500:]
    part.replace(library)
    return None
