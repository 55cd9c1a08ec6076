"""Pages that say that there is no such page, whatever the status of their answer.

Only what is sure counts: a page of few words under a title or headline that says it. An article about
status codes is longer; a start page is a page, whatever it says.
"""

import re
from typing import Final

from trapline.model import Document

_MOST_WORDS: Final = 120
_LONGEST_HEADLINE: Final = 120
_THING: Final = r"(?:page|file|document|resource|url|content|article|entry|item|product|address)"
_SAYS_SO: Final = re.compile(
    r"^\W*(?:http\s*)?(?:error|fehler|erreur)?\W*404\b(?:\W*$|.*\b(?:found|error|fehler|page|seite)\b)"
    rf"|\b{_THING}\b.{{0,40}}\b(?:(?:could|can|was|is)\s*(?:not|n.t)\s+(?:be\s+)?|not\s+)found\b"
    rf"|\b{_THING}\b.{{0,40}}\b(?:does\s*(?:not|n.t)|no\s+longer)\s+exists?\b"
    r"|^\W*(?:404\W*)?not\s+found\W*(?:404\W*)?$"
    r"|\bseite\b.{0,30}\b(?:nicht\s+gefunden|existiert\s+nicht)\b"
    r"|\bpage\b.{0,30}\b(?:introuvable|non\s+trouvée)\b"
    r"|\bpágina\b.{0,30}\bno\s+(?:encontrada|existe)\b"
    r"|\bpágina\s+não\s+encontrada\b"
    r"|\bpagina\b.{0,30}\b(?:non\s+trovata|niet\s+gevonden)\b"
    r"|страница\s+не\s+найдена"
    r"|ページが見つかりません",
    re.IGNORECASE,
)


def is_soft_404(document: Document) -> bool:
    """Tell whether a page is no more than the message that there is no such page."""
    _, _, path = document.url.partition("://")[2].partition("/")
    if not path or _is_long(document.text):
        return False
    return any(
        _SAYS_SO.search(line[:_LONGEST_HEADLINE].strip())
        for line in (document.metadata.title or "", _headline(document))
        if line
    )


def _is_long(text: str) -> bool:
    return len(text.split(maxsplit=_MOST_WORDS)) >= _MOST_WORDS


def _headline(document: Document) -> str:
    for line in document.markdown.splitlines():
        if line.startswith("#"):
            return line.lstrip("# ")
    return ""
