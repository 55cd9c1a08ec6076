"""How the texts of a source are cut and embedded: chosen once, kept with its generation."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from trapline.errors import InvalidInput
from trapline.knowledge.chunking import ChunkSize

LARGEST_CHUNK = 8_000


class IngestConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Which model makes the vectors, and how long passages are, in tokens."""

    model: Annotated[str, Meta(min_length=1, max_length=300)]
    chunk_tokens: Annotated[int, Meta(ge=16, le=LARGEST_CHUNK)] = 256
    chunk_overlap: Annotated[int, Meta(ge=0)] = 50

    @property
    def size(self) -> ChunkSize:
        return ChunkSize(self.chunk_tokens, self.chunk_overlap)


def read_config(stored: object, default: IngestConfig) -> IngestConfig:
    """Return a config, with what it leaves out as in another; InvalidInput says what is wrong."""
    if not isinstance(stored, dict):
        raise InvalidInput("An embedding config is an object.")
    try:
        config = msgspec.convert(msgspec.to_builtins(default) | stored, IngestConfig)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The embedding config cannot be read: {error}") from None
    _ = config.size
    return config
