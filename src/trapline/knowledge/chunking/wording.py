"""What a piece of markdown says in words: what is embedded, indexed and counted.

Link targets and escapes would take half of a passage's tokens on a page of documentation, and a
search for words must not find them.
"""

import re
from typing import Final

_MARKUP: Final = re.compile(
    r"!?\[(?P<words>(?:[^\[\]\\]|\\.)*)\](?:\((?:[^()\s\\]|\\.|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\))"
    r"|<(?P<bare>https?://[^<>\s]*)>"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
)


def wording(markdown: str) -> str:
    return _MARKUP.sub(_words, markdown)


def _words(match: re.Match[str]) -> str:
    words = match["words"]
    if words is not None:
        return wording(words) if "\\" in words else words
    return match["bare"] or match["escaped"] or ""


def title_words(markdown: str) -> str:
    """A heading without its markup."""
    return wording(markdown).replace("`", "").replace("**", "").strip()
