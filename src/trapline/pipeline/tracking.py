"""Change tracking as scrapes ask for it: compared with the last scrape of the URL under a tag."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from trapline.db.connection import Connection
from trapline.extract.diff import Diff, diff
from trapline.frontier.url import url_hash
from trapline.model import OrganisationId
from trapline.pipeline.sql import changes as queries
from trapline.store.identity import content_hash
from trapline.store.sql import snapshots
from trapline.store.sql.snapshots import LastSnapshotRow

ChangeStatus = Literal["new", "same", "changed", "removed"]

GIT_DIFF: Final = "git-diff"
JSON: Final = "json"
_GONE: Final = frozenset({404, 410})
_LONGEST_TAG: Final = 200


@dataclass(frozen=True, slots=True)
class Tracked:
    """What became of a page since its last scrape."""

    previous_scrape_at: datetime | None
    change_status: ChangeStatus
    visibility: Literal["visible", "hidden"]
    diff: Diff | None = None
    previous_json: Any = None

    def as_json(self) -> dict[str, object]:
        """Return it under Firecrawl's names."""
        answer: dict[str, object] = {
            "previousScrapeAt": self.previous_scrape_at and self.previous_scrape_at.isoformat(),
            "changeStatus": self.change_status,
            "visibility": self.visibility,
        }
        return answer if self.diff is None else answer | {"diff": self.diff.as_json()}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a scrape found, for the next one under its tag to be compared with."""

    organisation_id: OrganisationId
    url_hash: bytes
    tag: str
    scraped_at: datetime
    markdown: str
    gone: bool = False
    extracted: Any = None


async def track(  # noqa: PLR0913 (what was found, whose, when, and what to compare)
    conn: Connection,
    organisation_id: OrganisationId,
    url: str,
    markdown: str,
    *,
    scraped_at: datetime,
    tag: str | None = None,
    modes: Collection[str] = (),
    status: int | None = None,
    extracted: Any = None,
    remember: bool = True,
) -> Tracked:
    """Compare a scrape with the last one of its tag, and keep it for the next."""
    gone = status in _GONE
    new = Snapshot(
        organisation_id,
        url_hash(url),
        (tag or "").replace("\x00", "")[:_LONGEST_TAG],
        scraped_at,
        "" if gone else markdown.replace("\x00", ""),
        gone,
        extracted,
    )
    tracked = await compare(conn, new, modes=modes)
    if remember:
        await keep(conn, [new])
    return tracked


async def keep(conn: Connection, new: Sequence[Snapshot]) -> None:
    """Keep what scrapes found. In one order, so that two batches do not wait for each other."""
    for found in sorted(new, key=lambda one: (one.organisation_id, one.url_hash, one.tag)):
        await snapshots.keep_snapshot(
            conn,
            organisation_id=found.organisation_id,
            url_hash=found.url_hash,
            tag=found.tag,
            scraped_at=found.scraped_at,
            markdown=found.markdown,
            extracted=found.extracted,
            gone=found.gone,
        )


async def compare(conn: Connection, new: Snapshot, *, modes: Collection[str] = ()) -> Tracked:
    """Say what became of a page since the last scrape of its tag."""
    before = await snapshots.last_snapshot(
        conn, organisation_id=new.organisation_id, url_hash=new.url_hash, tag=new.tag
    )
    hidden = await queries.was_unlinked(
        conn, organisation_id=new.organisation_id, url_hash=new.url_hash
    )
    change, found = await _judged(before, new.markdown, gone=new.gone)
    return Tracked(
        previous_scrape_at=None if before is None else before.scraped_at,
        change_status=change,
        visibility="hidden" if hidden else "visible",
        diff=found if GIT_DIFF in modes else None,
        previous_json=before.extracted if before is not None and JSON in modes else None,
    )


async def _judged(
    before: LastSnapshotRow | None, markdown: str, *, gone: bool
) -> tuple[ChangeStatus, Diff | None]:
    if gone:
        return "removed", None
    if before is None or before.gone:
        return "new", None
    if content_hash(before.markdown) == content_hash(markdown):
        return "same", None
    # A large diff takes its time, and the loop has others to answer.
    found = await asyncio.to_thread(diff, before.markdown, markdown)
    return ("changed", found) if found.changed else ("same", None)
