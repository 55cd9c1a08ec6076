"""The results of visits and other crawl tasks, as handlers return them to be stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypedDict

from msgspec import structs

from trapline.errors import OUTCOMES, ExitCode
from trapline.knowledge.sources import SourceRef
from trapline.model import (
    Document,
    Fetched,
    Link,
    PageId,
    RedirectSource,
    RedirectTrace,
    SiteId,
)
from trapline.pipeline.crawl import page_directives
from trapline.pipeline.crawl.change_tracking import Snapshot
from trapline.pipeline.crawl.job_context import JobContext
from trapline.pipeline.crawl.page_directives import Directives
from trapline.pipeline.kinds import PageTask
from trapline.pipeline.llm import Answers
from trapline.pipeline.sql.page_lookup import KnownPagesRow
from trapline.queue.job_log import Note
from trapline.store.pages import Comparison, PageChange


@dataclass(slots=True)
class LoggedResult:
    """The result of a task that visits no page, with its notes for the job log."""

    result: dict[str, object]
    notes: list[Note] = field(default_factory=list)


class PageResult(TypedDict, total=False):
    """The stored result of a visit; of one that must leave no trace only its status and exit code."""

    url: str
    status: int | None
    exit_code: int
    visit_id: int
    page_id: PageId | None
    version_id: int | None
    change: PageChange | None
    answers: Mapping[str, Any]
    warnings: Sequence[str]
    tokens: int


@dataclass(slots=True)
class PageVisit:
    """A visit of a page, before it is stored."""

    task: PageTask
    context: JobContext
    site_id: SiteId
    fetched: Fetched
    started_at: datetime
    took_ms: int
    previous: KnownPagesRow | None = None
    document: Document | None = None
    """As it is stored, whatever formats the caller requests."""
    digest: bytes | None = None
    comparison: Comparison | None = None
    discovered: list[str] = field(default_factory=list)
    answers: Answers | None = None
    """The answers to the job's LLM requests."""
    tracked: dict[str, object] | None = None
    """The changes since the last scrape under the job's tag, where the job tracks them."""
    snapshot: Snapshot | None = None
    notes: list[Note] = field(default_factory=list)
    source: SourceRef | None = None
    """The knowledge source to index it in, where the job asks for that."""
    _directives: tuple[Fetched, Document | None, Directives] | None = None

    @property
    def is_stored(self) -> bool:
        """Whether the document becomes a version."""
        options = self.context.options
        hidden = not options.store_noindex and "noindex" in self.robots
        return options.scrape.store and not hidden

    @property
    def robots(self) -> frozenset[str]:
        return page_directives.read_robots(self.fetched, self.document, self.context.robots_agent)

    @property
    def directives(self) -> Directives:
        """The page's refresh and canonical URL, read once per fetch and document."""
        cached = self._directives
        if cached is None or cached[0] is not self.fetched or cached[1] is not self.document:
            directives = page_directives.read_directives(self.fetched, self.document)
            cached = self._directives = (self.fetched, self.document, directives)
        return cached[2]

    @property
    def redirects(self) -> tuple[RedirectTrace, ...]:
        """The redirects of the fetch, and those that the page declares."""
        fetched = self.fetched
        if fetched.exit_code is not ExitCode.CONTENT:
            return fetched.redirects
        last = len(fetched.requests) - 1
        redirects = list(fetched.redirects)
        refresh, canonical = self.directives.refresh, self.directives.canonical
        if refresh is not None:
            source, permanent = RedirectSource.META_REFRESH, refresh.seconds == 0
            redirects.append(RedirectTrace(fetched.url, refresh.url, source, permanent, last))
        if canonical is not None:
            source = RedirectSource.CANONICAL
            redirects.append(
                RedirectTrace(fetched.url, canonical, source, permanent=True, request=last)
            )
        return tuple(redirects)

    @property
    def links(self) -> Sequence[Link]:
        """The links to follow, with the target of a refresh."""
        if self.document is None:
            return ()
        links = self.document.links
        if "nofollow" in self.robots:
            links = tuple(structs.replace(link, rel=(*link.rel, "nofollow")) for link in links)
        refresh = self.directives.refresh
        return links if refresh is None else (*links, Link(refresh.url))


def join_traces(first: Fetched, then: Fetched, redirects: Sequence[RedirectTrace]) -> Fetched:
    """Return the second of two fetches with the requests and redirects of both."""
    before = len(first.requests)
    moved = [
        replace(r, request=None if r.request is None else r.request + before)
        for r in then.redirects
    ]
    return structs.replace(
        then, requests=first.requests + then.requests, redirects=(*redirects, *moved)
    )


def detail(fetched: Fetched) -> str | None:
    """Return the part of the message that the exit code's sentence does not have."""
    sentence, message = OUTCOMES[fetched.exit_code].sentence, fetched.message
    if not message.startswith(sentence):
        return message
    return message.removeprefix(sentence).strip().removeprefix("(").removesuffix(")") or None
