"""Chunking: markdown in, passages out, split at the boundaries of its structure."""

from trapline.knowledge.chunking.passages import ChunkSize, Passage, passages

__all__ = ["ChunkSize", "Passage", "passages"]
