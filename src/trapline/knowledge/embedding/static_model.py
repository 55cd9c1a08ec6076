"""The light tier: a text's vector is the mean of its tokens' vectors, read from a table.

The table and the tokenizer come in the wordllama wheel (MIT): 16 MB, 256 numbers a token, distilled
from a large model's input layer. We read its two files and none of its code, which would
reconfigure logging on import and look for files on the network.
"""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from trapline.errors import Unavailable
from trapline.knowledge.embedding.embedder import EmbeddingModel, Vectors, normalise
from trapline.knowledge.embedding.safetensors import tensors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
_SHA256: Final = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
_DIMENSION: Final = 256
# A passage has a few hundred tokens; a whole book embedded at once would say nothing.
_MOST_CHARACTERS: Final = 20_000


class StaticEmbedder:
    """Thousands of texts a second on one core, with nothing to download."""

    model: Final = EmbeddingModel("wordllama-l2-supercat-256", _DIMENSION, _SHA256[:12])

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, _DIMENSION), np.float32)
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        clipped = [text[:_MOST_CHARACTERS] for text in texts]
        encoded = self._tokenizer.encode_batch_fast(clipped, add_special_tokens=False)
        sums = np.zeros((len(texts), _DIMENSION), np.float32)
        for row, one in zip(sums, encoded, strict=True):
            if one.ids:
                self._table[one.ids].sum(axis=0, dtype=np.float32, out=row)
        return normalise(sums)

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer  # noqa: PLC0415 (only who embeds pays for it)

        return Tokenizer.from_file(str(_folder() / _TOKENIZER))

    @cached_property
    def _table(self) -> "NDArray[np.float16]":
        (table,) = tensors(_folder() / _WEIGHTS).values()
        return table


def _folder() -> Path:
    package = find_spec("wordllama")
    if package is None or not package.submodule_search_locations:
        raise Unavailable("The embedding model is missing: install the package wordllama.")
    return Path(package.submodule_search_locations[0])
