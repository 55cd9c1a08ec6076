"""The ingest config of a source: embedding model and chunk size, fixed for a generation."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from trapline.errors import InvalidInput
from trapline.knowledge.chunking import ChunkSize

LARGEST_CHUNK = 8_000


class IngestConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The embedding model, and the size of passages in tokens."""

    model: Annotated[str, Meta(min_length=1, max_length=300)]
    chunk_tokens: Annotated[int, Meta(ge=16, le=LARGEST_CHUNK)] = 256
    chunk_overlap: Annotated[int, Meta(ge=0)] = 50

    @property
    def size(self) -> ChunkSize:
        return ChunkSize(self.chunk_tokens, self.chunk_overlap)


def read_config(stored: object, default: IngestConfig) -> IngestConfig:
    """Return a config with missing fields from a default; InvalidInput if it is not valid."""
    if not isinstance(stored, dict):
        raise InvalidInput("An embedding config is an object.")
    try:
        config = msgspec.convert(msgspec.to_builtins(default) | stored, IngestConfig)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The embedding config cannot be read: {error}") from None
    _ = config.size
    return config
