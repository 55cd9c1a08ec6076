"""The SELECTs of the documents, letter by letter, by the name of their document and their own."""

import re
from pathlib import Path

_NAME = re.compile(r"^-- name: (.+)\n", re.MULTILINE)


def statements(document: str) -> dict[str, str]:
    text = (Path(__file__).parent / f"{document}.sql").read_text()
    _, *parts = _NAME.split(text)
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


NUQ = statements("nuq")
RAG = statements("rag")
LEXICON = statements("lexicon")
BEE = statements("bee")
