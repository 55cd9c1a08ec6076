"""Articles, with their archive, tags and authors."""

from collections.abc import Iterator
from typing import Any

from tests.site.compose import FRAMES, compose
from tests.site.content import Source, read, table
from tests.site.page import Page
from tests.site.sections.listing import Entry, listing, paginated

_PER_PAGE = 6
_WORDS_PER_MINUTE = 220


def pages() -> Iterator[Page]:
    articles = articles_by_date()
    authors = {author["slug"]: author for author in table("authors")}
    for at in range(len(articles)):
        yield _article(articles, at, authors)
    yield from paginated(
        "/journal/",
        "Journal",
        [_entry(article) for article in reversed(articles)],
        _PER_PAGE,
        summary="Notes on walking, watching and the making of instruments.",
    )
    yield from _tags(articles)
    for slug, author in authors.items():
        own = [_entry(article) for article in articles if article.meta["author"] == slug]
        yield listing(
            f"/journal/by/{slug}/", author["name"], own, summary=author["about"], frame="blog"
        )


def articles_by_date() -> list[Source]:
    return sorted(read("journal"), key=lambda article: article.date)


def article(source: Source, target: str, frame: str, **context: Any) -> Page:
    """Render one article; duplicates of it at other targets are made the same way."""
    return compose(
        "article",
        target,
        kind="article",
        title=source.title,
        summary=source.summary,
        date=source.date,
        frame=frame,
        text=source.prose,
        tags=source.words("tags"),
        minutes=1 + len(source.text.split()) // _WORDS_PER_MINUTE,
        **context,
    )


def author_of(source: Source) -> dict[str, str]:
    return next(entry for entry in table("authors") if entry["slug"] == source.meta["author"])


def _article(articles: list[Source], at: int, authors: dict[str, dict[str, str]]) -> Page:
    source = articles[at]
    return article(
        source,
        f"/journal/{source.slug}/",
        source.layout or FRAMES[at % len(FRAMES)],
        author=authors[source.meta["author"]],
        related=[articles[(at + step) % len(articles)] for step in (2, 5, 7)],
        earlier=articles[at - 1] if at else None,
        later=articles[at + 1] if at + 1 < len(articles) else None,
    )


def _entry(source: Source) -> Entry:
    return Entry(
        f"/journal/{source.slug}/", source.title, source.summary, source.date.strftime("%d %B %Y")
    )


def _tags(articles: list[Source]) -> Iterator[Page]:
    for tag in sorted({tag for source in articles for tag in source.words("tags")}):
        entries = [_entry(source) for source in articles if tag in source.words("tags")]
        yield listing(
            f"/journal/tag/{tag}/", f"Filed under {tag}", entries, summary=f"All notes on {tag}."
        )
