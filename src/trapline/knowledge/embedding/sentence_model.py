"""The better tier on this machine: a sentence model on onnxruntime, read from a directory.

The directory holds `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`, as sentence models are
published. The model is given token ids and a mask and answers with one row for a text, or with one
for each token, of which the mean is taken (or the first, where `1_Pooling/config.json` says so).
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from trapline.errors import Unavailable
from trapline.knowledge.embedding.embedder import EmbeddingModel, Vectors, normalise

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

_PLACES: Final = ("model.onnx", "onnx/model.onnx")
_MOST_CHARACTERS: Final = 20_000
# A few texts at a time: a question that comes meanwhile waits for one batch, not for a whole file.
_AT_ONCE: Final = 8
_LONGEST: Final = 256
_TOKENS: Final = 2


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory, and the one thread that runs it: threads are bounded by the setting."""

    session: "InferenceSession"
    tokenizer: "Tokenizer"
    inputs: frozenset[str]
    first_token: bool
    model: EmbeddingModel
    thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "sentence model")
    )


class SentenceEmbedder:
    """Tens of passages a second on one core."""

    def __init__(self, directory: Path, *, threads: int) -> None:
        self._loaded = load(directory.resolve(), threads)

    @property
    def model(self) -> EmbeddingModel:
        return self._loaded.model

    async def embed(self, texts: Sequence[str]) -> Vectors:
        found = np.zeros((len(texts), self.model.dimension), np.float32)
        if not texts:
            return found
        loop = asyncio.get_running_loop()
        # Texts of about the same length go together, so that little is computed for nothing.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        for start in range(0, len(order), _AT_ONCE):
            chosen = order[start : start + _AT_ONCE]
            some = [texts[at][:_MOST_CHARACTERS] for at in chosen]
            found[chosen] = await loop.run_in_executor(self._loaded.thread, self._run, some)
        return normalise(found)

    def _run(self, texts: Sequence[str]) -> Vectors:
        encoded = [one.ids for one in self._loaded.tokenizer.encode_batch_fast(list(texts))]
        longest = max(1, *map(len, encoded))
        ids = np.zeros((len(texts), longest), np.int64)
        mask = np.zeros((len(texts), longest), np.int64)
        for row, one in enumerate(encoded):
            ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        answer = self._loaded.session.run(
            None, {name: value for name, value in given.items() if name in self._loaded.inputs}
        )[0]
        return _pooled(np.asarray(answer, np.float32), mask, first=self._loaded.first_token)


def _pooled(answer: NDArray[np.float32], mask: NDArray[np.int64], *, first: bool) -> Vectors:
    if answer.ndim == _TOKENS:
        return answer
    if first:
        return answer[:, 0]
    kept = answer * mask[..., None]
    mean: Vectors = kept.sum(axis=1) / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return mean.astype(np.float32)


def require_runtime() -> None:
    """Refuse, before any work is done, what needs more than is installed."""
    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        raise Unavailable("Sentence models need onnxruntime: install trapline[minilm].")


@lru_cache(maxsize=4)
def load(directory: Path, threads: int) -> LoadedModel:
    """Load a model once for a process; Unavailable says what is wrong with its directory."""
    require_runtime()
    path = next((directory / place for place in _PLACES if (directory / place).is_file()), None)
    if path is None or not (directory / "tokenizer.json").is_file():
        raise Unavailable(f"{directory} is no sentence model: model.onnx, tokenizer.json.")
    session = _session(path, threads)
    inputs = frozenset(one.name for one in session.get_inputs())
    unknown = inputs - {"input_ids", "attention_mask", "token_type_ids"}
    if unknown or "input_ids" not in inputs:
        raise Unavailable(f"{path} asks for {', '.join(sorted(inputs))}, not for token ids.")
    tokenizer = _tokenizer(directory)
    first = bool(_optional_json(directory / "1_Pooling/config.json").get("pooling_mode_cls_token"))
    digest = _digest(path, directory / "tokenizer.json")
    probe = EmbeddingModel(directory.name, 1, digest)
    loaded = LoadedModel(session, tokenizer, inputs, first, probe)
    return LoadedModel(
        session, tokenizer, inputs, first, EmbeddingModel(directory.name, _width(loaded), digest)
    )


def _session(path: Path, threads: int) -> "InferenceSession":
    import onnxruntime  # noqa: PLC0415 (only who has the better tier pays for it)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait for work must not use the cores that others need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except _faults() as error:
        raise Unavailable(f"{path} cannot be loaded: {str(error)[:300]}") from None


def _faults() -> tuple[type[Exception], ...]:
    """What onnxruntime raises: classes of its binding, without one above them all."""
    from onnxruntime.capi import onnxruntime_pybind11_state as binding  # noqa: PLC0415 (as above)

    found = [one for one in vars(binding).values() if isinstance(one, type)]
    own = [one for one in found if issubclass(one, Exception)]
    return (*own, RuntimeError, ValueError)


def _tokenizer(directory: Path) -> "Tokenizer":
    from tokenizers import Tokenizer  # noqa: PLC0415 (as above)

    path = directory / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 (it raises Exception itself)
        raise Unavailable(f"{path} cannot be read: {str(error)[:300]}") from None
    told = _optional_json(directory / "sentence_bert_config.json").get("max_seq_length")
    tokenizer.no_padding()
    tokenizer.enable_truncation(told if isinstance(told, int) and told > 1 else _LONGEST)
    return tokenizer


def _width(loaded: LoadedModel) -> int:
    """How many numbers a vector has: asked of the model itself, for not all say so."""
    ids = np.array([loaded.tokenizer.encode("one").ids or [0]], np.int64)
    given = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "token_type_ids": np.zeros_like(ids),
    }
    try:
        answer = loaded.session.run(
            None, {name: value for name, value in given.items() if name in loaded.inputs}
        )[0]
    except _faults() as error:
        raise Unavailable(f"The sentence model does not run: {str(error)[:300]}") from None
    return int(np.asarray(answer).shape[-1])


def _optional_json(path: Path) -> dict[str, Any]:
    """What a further file of a model says; it need not be there."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(*paths: Path) -> str:
    """Tell weights apart, also those that go by the same name."""
    seen = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            seen.update(hashlib.file_digest(file, "sha256").digest())
    return seen.hexdigest()[:12]
