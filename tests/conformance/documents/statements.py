"""The SELECTs of the documents, letter by letter, by the name of their document and their own."""

import re
from pathlib import Path

_NAME = re.compile(r"^-- name: (.+)\n", re.MULTILINE)


def read(path: Path) -> dict[str, str]:
    """Return the statements of a file by their names."""
    _, *parts = _NAME.split(path.read_text())
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def statements(document: str) -> dict[str, str]:
    return read(Path(__file__).parent / f"{document}.sql")


NUQ = statements("nuq")
RAG = statements("rag")
LEXICON = statements("lexicon")
BEE = statements("bee")
