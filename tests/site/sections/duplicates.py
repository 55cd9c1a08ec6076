"""The same words at several addresses: exactly, nearly, or nothing but the frame."""

from collections.abc import Iterator

from tests.site.compose import compose
from tests.site.content import Source
from tests.site.page import Page
from tests.site.prose import markdown
from tests.site.sections.journal import article, articles_by_date, author_of

EXACT = 4
"""How many articles have a print version, and a pair of copies at two more addresses."""
_CHANGES = (
    ("the", "the"),
    ("people", "folk"),
    ("because", "since"),
    ("nobody", "no one"),
)


def pages() -> Iterator[Page]:
    articles = articles_by_date()
    chosen = articles[:EXACT]
    groups = [
        ("Printed", [(f"/print/{s.slug}/", s.title) for s in chosen]),
        ("Copied", [(f"/copies/{shelf}/{s.slug}/", s.title) for shelf in "ab" for s in chosen]),
        ("Retold", [(f"/retold/{s.slug}/", s.title) for s in articles[EXACT : 2 * EXACT]]),
        ("Empty", [(f"/thin/{n}/", f"Thin page {n}") for n in (1, 2, 3)]),
    ]
    yield compose(
        "plain",
        "/archive/",
        kind="listing",
        title="Archive",
        text=markdown("What we have more than once."),
        groups=groups,
    )
    for source in chosen:
        yield from _exact(source)
    for source in articles[EXACT : 2 * EXACT]:
        yield _near(source)
    for number in (1, 2, 3):
        yield _thin(number)


def _exact(source: Source) -> Iterator[Page]:
    """Yield a copy that names the original, and two that name nobody and equal each other."""
    printed = _article(source, f"/print/{source.slug}/", canonical=f"/journal/{source.slug}/")
    yield printed
    first = _article(source, f"/copies/a/{source.slug}/", canonical="")
    second = _article(source, f"/copies/b/{source.slug}/", canonical="")
    second.body = first.body
    yield first
    yield second


def _near(source: Source) -> Page:
    """Return an article in which a few words were exchanged and one sentence was added."""
    text = source.text
    for old, new in _CHANGES:
        text = text.replace(f" {old} ", f" {new} ", 1)
    retold = Source(source.slug, source.meta, f"{text}\n\nFirst printed in our spring letter.")
    return _article(retold, f"/retold/{source.slug}/", canonical="")


def _article(source: Source, target: str, canonical: str) -> Page:
    return article(
        source,
        target,
        "modern",
        author=author_of(source),
        related=(),
        earlier=None,
        later=None,
        canonical=canonical,
        listed=False,
    )


def _thin(number: int) -> Page:
    """Return a page that is nothing but its frame."""
    return compose(
        "plain",
        f"/thin/{number}/",
        kind="listing",
        title=f"Thin page {number}",
        text=markdown(""),
        groups=(),
        listed=False,
    )
