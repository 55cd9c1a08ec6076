"""What a visit of a page came to, on its way to be stored."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from msgspec import structs

from trapline.errors import OUTCOMES, ExitCode
from trapline.model import Document, Fetched, Link, RedirectSource, RedirectTrace, SiteId
from trapline.pipeline import wishes
from trapline.pipeline.crawls import Crawl, SourceRef
from trapline.pipeline.kinds import PageTask
from trapline.pipeline.language import Answers
from trapline.pipeline.sql.known import KnownPagesRow
from trapline.pipeline.tracking import Snapshot
from trapline.pipeline.wishes import Claims
from trapline.queue.logbook import Note
from trapline.store.pages import Comparison, Recorded


@dataclass(slots=True)
class Told:
    """The result of a task that is no page, and what is to be said of it in the job's log."""

    result: dict[str, object]
    notes: list[Note] = field(default_factory=list)


@dataclass(slots=True)
class PageVisit:
    """What a visit of a page came to, on its way to be stored."""

    task: PageTask
    crawl: Crawl
    site_id: SiteId
    fetched: Fetched
    started_at: datetime
    took_ms: int
    before: KnownPagesRow | None = None
    document: Document | None = None
    """As it is stored, whatever the caller wants."""
    digest: bytes | None = None
    comparison: Comparison | None = None
    discovered: list[str] = field(default_factory=list)
    answers: Answers | None = None
    """What a language model said of it, where the job wishes that."""
    tracked: dict[str, object] | None = None
    """What became of it since the last scrape under the job's tag, where the job tracks that."""
    snapshot: Snapshot | None = None
    notes: list[Note] = field(default_factory=list)
    source: SourceRef | None = None
    """Where it is made searchable, where the job asks for that."""
    # Set once it is stored.
    visit_id: int | None = None
    recorded: Recorded | None = None
    _claims: tuple[Fetched, Document | None, Claims] | None = None

    @property
    def is_kept(self) -> bool:
        """Whether what was read becomes a version."""
        options = self.crawl.options
        hidden = not options.store_noindex and "noindex" in self.robots
        return options.scrape.store and not hidden

    @property
    def robots(self) -> frozenset[str]:
        return wishes.robots_of(self.fetched, self.document, self.crawl.robots_agent)

    @property
    def claims(self) -> Claims:
        """What the page says of its place, read once for what was fetched."""
        held = self._claims
        if held is None or held[0] is not self.fetched or held[1] is not self.document:
            found = wishes.claims_of(self.fetched, self.document)
            held = self._claims = (self.fetched, self.document, found)
        return held[2]

    @property
    def redirects(self) -> tuple[RedirectTrace, ...]:
        """The redirects on the way, and where the page itself says that it is."""
        fetched = self.fetched
        if fetched.exit_code is not ExitCode.CONTENT:
            return fetched.redirects
        last = len(fetched.requests) - 1
        found = list(fetched.redirects)
        refresh, claimed = self.claims.refresh, self.claims.canonical
        if refresh is not None:
            source, permanent = RedirectSource.META_REFRESH, refresh.seconds == 0
            found.append(RedirectTrace(fetched.url, refresh.url, source, permanent, last))
        if claimed is not None:
            source = RedirectSource.CANONICAL
            found.append(RedirectTrace(fetched.url, claimed, source, permanent=True, request=last))
        return tuple(found)

    @property
    def links(self) -> Sequence[Link]:
        """The links to follow: also where the page sends its visitor, unless it says nofollow."""
        if self.document is None:
            return ()
        links = self.document.links
        if "nofollow" in self.robots:
            links = tuple(structs.replace(link, rel=(*link.rel, "nofollow")) for link in links)
        refresh = self.claims.refresh
        return links if refresh is None else (*links, Link(refresh.url))


def joined(first: Fetched, then: Fetched, redirects: Sequence[RedirectTrace]) -> Fetched:
    """Return the second of two fetches with the way of both."""
    before = len(first.requests)
    moved = [
        replace(r, request=None if r.request is None else r.request + before)
        for r in then.redirects
    ]
    return structs.replace(
        then, requests=first.requests + then.requests, redirects=(*redirects, *moved)
    )


def detail(fetched: Fetched) -> str | None:
    """What the exit code's own sentence does not say."""
    sentence, message = OUTCOMES[fetched.exit_code].sentence, fetched.message
    if not message.startswith(sentence):
        return message
    return message.removeprefix(sentence).strip().removeprefix("(").removesuffix(")") or None
