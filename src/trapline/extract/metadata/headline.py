"""What a page is called on itself: its headline, or its title without the name of the site."""

import re
from collections.abc import Iterable, Mapping

import turbohtml

from trapline.extract.metadata.authorship import collapse_space

_WORD = re.compile(r"\w+")
# Marks between the parts of a title; a dash or a colon counts with space on both sides.
_JOINT = re.compile("\\s+(?:[-\u2013\u2014\u00b7\u2022\u203a~:/]|::)\\s+|\\s*[|\u00bb\u00ab]\\s*")
_PERMALINKS = ("¶", "#")
_MAX_HEADINGS = 8
_MAX_LENGTH = 300
_RELATED = 0.5
Words = tuple[str, ...]


def read_headline(
    tree: turbohtml.Document, title: str | None, folded: Mapping[str, str]
) -> str | None:
    """The heading that the title speaks of; without one, the title itself, cut to its subject."""
    shared = folded.get("og:title") or folded.get("twitter:title")
    headings = [_text_of(heading) for heading in tree.find_all("h1")[:_MAX_HEADINGS]]
    if title and not shared and (plain := obvious_headline(headings, title)):
        return plain
    return best_headline(headings, shared, title, folded.get("og:site_name", ""))


def best_headline(
    headings: list[str], shared: str | None, title: str | None, site_name: str
) -> str | None:
    """The one of the headings that shares most with the titles, or their subject."""
    titles = list(dict.fromkeys(collapse_space(text) for text in (shared, title) if text))
    if not titles:
        return next(filter(None, headings), None)
    site = _words(site_name)
    parts = [_parts(title) for title in titles]
    subject = _words(titles[0])
    names = ((), *_site_names(parts, subject, site))
    own = [(heading, words) for heading in headings if (words := _words(heading)) not in names]
    return (_spoken_of(own, titles, subject) if own else None) or _subject(
        titles[0], parts[0], site
    )


def obvious_headline(headings: list[str], title: str) -> str | None:
    """A shortcut to `best_headline` for most pages: a title of one part, or the heading it begins with.

    The words of such a heading are all in the title, and its first part is no name of the site.
    """
    if len(headings) > 1:
        return None
    title = collapse_space(title)
    joint = _JOINT.search(title)
    subject = title[: joint.start()] if joint else title
    if not _WORD.search(subject):
        return None
    if headings:
        return subject if headings[0] == subject else None
    return None if joint else title


def _text_of(heading: turbohtml.Element) -> str:
    text = collapse_space(heading.text[: 2 * _MAX_LENGTH])
    if text.endswith(_PERMALINKS):
        text = text[:-1].rstrip()
    return text[:_MAX_LENGTH]


def _spoken_of(
    headings: Iterable[tuple[str, Words]], titles: list[str], subject: Words
) -> str | None:
    """The heading that shares most words with the titles, if it shares half of its own."""
    first = set(subject)
    known = first if len(titles) == 1 else set(_words(" ".join(titles)))
    best, highest = None, 0.0
    for heading, said in headings:
        words = set(said)
        share = len(words & known) / len(words)
        score = share + len(words & first) / max(len(first), 1) / 2
        if share >= _RELATED and score > highest:
            best, highest = heading, score
    return best


def _site_names(parts: list[list[str]], subject: Words, site: Words) -> set[Words]:
    """What headings say that only name the site: its declared name, the last part of a title."""
    ends = {_words(title[-1]) for title in parts if len(title) > 1}
    return {site, *ends} - {subject, *(_words(title[0]) for title in parts)}


def _subject(title: str, parts: list[str], site: Words) -> str:
    """The first part of a title that is not the site's name; one word alone is seldom it."""
    parts = [part for part in parts if _words(part) != site] or [title]
    return parts[0] if len(_words(parts[0])) > 1 else max(parts, key=len)


def _parts(title: str) -> list[str]:
    return [part for part in _JOINT.split(title) if part] or [title]


def _words(text: str) -> Words:
    return tuple(_WORD.findall(text.lower()))
