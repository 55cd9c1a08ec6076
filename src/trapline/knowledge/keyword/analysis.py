"""Text analysis: texts and queries to terms, by case folding, stop words and stemming."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Final

from Stemmer import Stemmer

from trapline.knowledge.keyword.stopwords import STOPWORDS

ANALYSIS_VERSION: Final = 1

# Longer words are encoded data, not language.
_LONGEST: Final = 40
_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD: Final = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+(?:[_'’][^\W_{_CJK}]+)*")  # noqa: RUF001
_JOINT: Final = re.compile(r"[_'’]")  # noqa: RUF001 (the apostrophe that people type)
_STEMMERS: Final = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german",
    "el": "greek", "en": "english", "es": "spanish", "et": "estonian", "eu": "basque",
    "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali",
    "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip


def language_of(tag: str | None) -> str:
    """The language whose rules apply to a tag such as `en-GB`; `xx` if there are none."""
    primary = (tag or "").lower().replace("_", "-").partition("-")[0]
    primary = {"nb": "no", "nn": "no"}.get(primary, primary)
    return primary if primary in _STEMMERS else "xx"


def terms(text: str, language: str) -> list[str]:
    """The terms of a text, in order, with repetitions."""
    stop = STOPWORDS.get(language, frozenset())
    words = [word for word in words_of(text) if word not in stop]
    stemmer = _stemmer(language)
    if stemmer is None:
        return words
    stems: list[str] = stemmer.stemWords(words)
    return stems


def term_counts(text: str, language: str) -> Counter[str]:
    return Counter(terms(text, language))


def words_of(text: str) -> Iterator[str]:
    """The case-folded words of a text, before any rule of a language."""
    for found in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if found[0] >= "\u3040" and _is_cjk(found[0]):
            yield from _pairs(found)
            continue
        if len(found) <= _LONGEST:
            yield found
        if _JOINT.search(found):
            # A name such as `read_text` is found whole and by its parts.
            yield from (part for part in _JOINT.split(found) if 1 < len(part) <= _LONGEST)


def sequence(text: str) -> str:
    """The words of a text, one space before and after each: a phrase is a substring of it."""
    found = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    words = (" ".join(one) if _is_cjk(one[0]) else one.replace("’", "'") for one in found)  # noqa: RUF001
    return f" {' '.join(words)} "


def _pairs(run: str) -> Iterator[str]:
    """Scripts without spaces are indexed by bigrams of characters."""
    if len(run) == 1:
        yield run
    yield from (run[at : at + 2] for at in range(len(run) - 1))


def _is_cjk(character: str) -> bool:
    return re.match(f"[{_CJK}]", character) is not None


@cache
def _stemmer(language: str) -> Stemmer | None:
    name = _STEMMERS.get(language)
    return None if name is None else Stemmer(name)
