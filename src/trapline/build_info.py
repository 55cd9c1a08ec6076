"""What this build is: its version, the commit it was made of, its extractor, compiled or not."""

import subprocess
from pathlib import Path
from typing import Final

from trapline import __version__, native
from trapline.extract.version import EXTRACTOR_VERSION

# `hatch_build.py` writes it into distributions. A checkout has none.
_COMMIT_FILE: Final = Path(__file__).with_name("commit.txt")


def description() -> str:
    """Return what `trapline --version` prints after the name."""
    commit = _commit()
    return ", ".join(
        (
            f"{__version__} (commit {commit})" if commit else __version__,
            f"extractor {EXTRACTOR_VERSION}",
            "native library" if native.available else "pure Python",
        )
    )


def _commit() -> str | None:
    try:
        return _COMMIT_FILE.read_text().strip()
    except OSError:
        return _checked_out(Path(__file__).parents[2])


def _checked_out(root: Path) -> str | None:
    if not (root / ".git").exists():
        return None
    command = ("git", "-C", str(root), "rev-parse", "--short=10", "HEAD")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
