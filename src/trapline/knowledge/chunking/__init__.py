"""Markdown in, passages out: cut where the text's own structure has its joints."""

from trapline.knowledge.chunking.passages import ChunkSize, Passage, passages

__all__ = ["ChunkSize", "Passage", "passages"]
