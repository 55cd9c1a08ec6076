"""Markdown to plain text, which is embedded, indexed and counted.

On a page of documentation link targets and escapes are half of the tokens, and a keyword search
must not match them.
"""

import re
from typing import Final

_MARKUP: Final = re.compile(
    r"!?\[(?P<words>(?:[^\[\]\\]|\\.)*)\](?:\((?:[^()\s\\]|\\.|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\))"
    r"|<(?P<bare>https?://[^<>\s]*)>"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
)


def plain_text(markdown: str) -> str:
    return _MARKUP.sub(_words, markdown)


def _words(match: re.Match[str]) -> str:
    words = match["words"]
    if words is not None:
        return plain_text(words) if "\\" in words else words
    return match["bare"] or match["escaped"] or ""


def plain_title(markdown: str) -> str:
    """A heading without its markup."""
    return plain_text(markdown).replace("`", "").replace("**", "").strip()
