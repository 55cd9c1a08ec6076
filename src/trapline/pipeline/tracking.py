"""Change tracking as scrapes ask for it: compared with the last scrape of the URL under a tag."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from trapline.db.connection import Connection
from trapline.extract.diff import Diff, diff
from trapline.frontier.url import url_hash
from trapline.model import OrganisationId
from trapline.pipeline.language import Answers, LanguageModel
from trapline.pipeline.options import Wish
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
    fields: Mapping[str, Any] | None = None
    """The fields that differ, with what they were and are."""

    def as_json(self) -> dict[str, object]:
        """Return it under Firecrawl's names."""
        answer: dict[str, object] = {
            "previousScrapeAt": self.previous_scrape_at and self.previous_scrape_at.isoformat(),
            "changeStatus": self.change_status,
            "visibility": self.visibility,
        }
        if self.diff is not None:
            answer["diff"] = self.diff.as_json()
        return answer if self.fields is None else answer | {"json": self.fields}


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
    new = snapshot(
        organisation_id,
        url,
        markdown,
        scraped_at=scraped_at,
        tag=tag,
        status=status,
        extracted=extracted,
    )
    tracked = await compare(conn, new, modes=modes)
    if remember:
        await keep(conn, [new])
    return tracked


def snapshot(  # noqa: PLR0913 (what was found, whose, when)
    organisation_id: OrganisationId,
    url: str,
    markdown: str,
    *,
    scraped_at: datetime,
    tag: str | None = None,
    status: int | None = None,
    extracted: Any = None,
) -> Snapshot:
    """Return what a scrape found; of a page that is gone, nothing."""
    gone = status in _GONE
    return Snapshot(
        organisation_id,
        url_hash(url),
        (tag or "").replace("\x00", "")[:_LONGEST_TAG],
        scraped_at,
        "" if gone else markdown.replace("\x00", ""),
        gone,
        extracted,
    )


async def read_fields(
    model: LanguageModel, wish: Wish, tracked: Tracked, new: Snapshot
) -> tuple[Tracked, Snapshot, Answers]:
    """Have a language model read the fields of a page, and add which of them changed.

    Of a page that is the same, they are what they were: then nobody is asked.
    """
    if new.gone:
        return tracked, new, Answers()
    if tracked.change_status == "same" and tracked.previous_json is not None:
        kept = replace(new, extracted=tracked.previous_json)
        return replace(tracked, fields={}), kept, Answers()
    answers = await model.answer((wish,), new.markdown)
    current = answers.values.get(wish.kind)
    if current is None:
        return tracked, new, answers
    found = replace(new, extracted=current)
    return replace(tracked, fields=differences(tracked.previous_json, current)), found, answers


def differences(previous: Any, current: Any) -> dict[str, Any] | None:
    """Return the fields that differ; None when there is nothing to compare with."""
    if previous is None:
        return None
    if not (isinstance(previous, Mapping) and isinstance(current, Mapping)):
        return {} if previous == current else {"value": _both(previous, current)}
    names = dict.fromkeys([*current, *previous])
    return {
        name: _both(previous.get(name), current.get(name))
        for name in names
        if previous.get(name) != current.get(name)
    }


def _both(previous: Any, current: Any) -> dict[str, Any]:
    return {"previous": previous, "current": current}


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
