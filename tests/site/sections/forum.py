"""A forum: boards, threads and posts, in a modern and an old shape. It sends no validators."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.site.compose import compose
from tests.site.content import Source, read
from tests.site.page import Page
from tests.site.prose import Prose, markdown
from tests.site.sections.listing import Entry, listing
from tests.site.sheet import sheet

CATEGORIES = {
    "wren-logger": "The logger",
    "instruments": "Instruments",
    "trails": "Trails",
    "by-the-fire": "By the fire",
}
_POST = re.compile(r"^=== (\S+) \| (.+)$", re.MULTILINE)
_SHAPES = (("forum_divs", "modern"), ("forum_tables", "table"), ("forum_divs", "blog"))


@dataclass(frozen=True, slots=True)
class Post:
    author: str
    when: str
    text: Prose


def pages() -> Iterator[Page]:
    threads = read("forum")
    boards = [
        Entry(f"/forum/c/{slug}/", name, f"Everything about {name.lower()}.")
        for slug, name in CATEGORIES.items()
    ]
    yield _board("/forum/", "The Hearth", boards, "Ask, answer, report.")
    for slug, name in CATEGORIES.items():
        entries = [_entry(t) for t in threads if t.meta["category"] == slug]
        yield _board(f"/forum/c/{slug}/", name, entries, "Newest last.")
    for at in range(len(threads)):
        yield _thread(threads, at)
    for name in sorted({post.author for thread in threads for post in posts_of(thread)}):
        yield sheet(f"/forum/u/{name}", name, "A member who prefers not to say more.")


def _board(target: str, title: str, entries: list[Entry], summary: str) -> Page:
    return listing(target, title, entries, summary=summary, kind="forum", validators=frozenset())


def posts_of(thread: Source) -> list[Post]:
    """Split a thread at its `=== author | time` lines."""
    _, *parts = _POST.split(thread.text)
    return [
        Post(author, when, markdown(text.strip()))
        for author, when, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


def _entry(thread: Source) -> Entry:
    posts = posts_of(thread)
    note = f"{len(posts) - 1} replies, last by {posts[-1].author}"
    return Entry(f"/forum/t/{thread.slug}", thread.title, f"Begun by {posts[0].author}.", note)


def _thread(threads: list[Source], at: int) -> Page:
    thread = threads[at]
    template, frame = _SHAPES[at % len(_SHAPES)]
    return compose(
        template,
        f"/forum/t/{thread.slug}",
        kind="forum",
        title=thread.title,
        frame=frame,
        category=thread.meta["category"],
        category_name=CATEGORIES[thread.meta["category"]],
        tags=thread.words("tags"),
        posts=posts_of(thread),
        others=[threads[(at + step) % len(threads)] for step in (1, 4, 6)],
        validators=frozenset(),
    )
