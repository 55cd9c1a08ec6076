"""What every embedding model can do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """Which model made a vector. Vectors of different models are never compared.

    `digest` tells weights apart that go by the same name.
    """

    name: str
    dimension: int
    digest: str = ""


class Embedder(Protocol):
    """Makes one row of length one for each text; a text without any words it knows gets zeros."""

    @property
    def model(self) -> EmbeddingModel: ...

    async def embed(self, texts: Sequence[str]) -> Vectors: ...


def normalise(vectors: Vectors) -> Vectors:
    """Scale rows to length one, so that their inner product is their cosine."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
