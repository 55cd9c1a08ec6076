"""Firecrawl's changeTracking: compares a scrape with the last one of its URL, tag and variant."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from trapline.db.connection import Connection
from trapline.extract.diff import Diff, diff
from trapline.frontier.canonical_url import url_hash
from trapline.model import OrganisationId
from trapline.pipeline.llm import Answers, LanguageModel
from trapline.pipeline.options import LlmRequest
from trapline.pipeline.sql import changes as queries
from trapline.store.changes import ChangeStatus
from trapline.store.content_hash import content_hash
from trapline.store.sql import snapshots
from trapline.store.sql.snapshots import LastSnapshotRow

GIT_DIFF: Final = "git-diff"
JSON: Final = "json"
_GONE: Final = frozenset({404, 410})
_MAX_TAG_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class TrackedChange:
    """The change of a page since its last scrape."""

    previous_scrape_at: datetime | None
    change_status: ChangeStatus
    visibility: Literal["visible", "hidden"]
    diff: Diff | None = None
    previous_json: Any = None
    fields: Mapping[str, Any] | None = None
    """The fields that differ, with their previous and current values."""

    def as_json(self) -> dict[str, object]:
        """Return it in Firecrawl's format."""
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
    """The content of a scrape, which the next one under its tag is compared with."""

    organisation_id: OrganisationId
    url_hash: bytes
    tag: str
    scraped_at: datetime
    markdown: str
    gone: bool = False
    extracted: Any = None
    variant: bytes = b""


def take_snapshot(  # noqa: PLR0913 (the content, its owner, its time)
    organisation_id: OrganisationId,
    url: str,
    markdown: str,
    *,
    scraped_at: datetime,
    tag: str | None = None,
    status: int | None = None,
    extracted: Any = None,
    variant: bytes = b"",
) -> Snapshot:
    """Return the snapshot of a scrape; that of a gone page has no content."""
    gone = status in _GONE
    return Snapshot(
        organisation_id,
        url_hash(url),
        (tag or "").replace("\x00", "")[:_MAX_TAG_LENGTH],
        scraped_at,
        "" if gone else markdown.replace("\x00", ""),
        gone,
        extracted,
        variant,
    )


async def read_fields(
    model: LanguageModel, request: LlmRequest, tracked: TrackedChange, new: Snapshot
) -> tuple[TrackedChange, Snapshot, Answers]:
    """Read the fields of a page with a language model, and add those that changed.

    The model is not called for an unchanged page: its fields are the previous ones.
    """
    if new.gone:
        return tracked, new, Answers()
    if tracked.change_status == "same" and tracked.previous_json is not None:
        kept = replace(new, extracted=tracked.previous_json)
        return replace(tracked, fields={}), kept, Answers()
    answers = await model.answer((request,), new.markdown)
    current = answers.values.get(request.kind)
    if current is None:
        return tracked, new, answers
    found = replace(new, extracted=current)
    return replace(tracked, fields=changed_fields(tracked.previous_json, current)), found, answers


def changed_fields(previous: Any, current: Any) -> dict[str, Any] | None:
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


async def store_snapshots(conn: Connection, new: Sequence[Snapshot]) -> None:
    """Store snapshots, in one order so that two batches do not deadlock."""
    for found in sorted(
        new, key=lambda one: (one.organisation_id, one.url_hash, one.tag, one.variant)
    ):
        await snapshots.keep_snapshot(
            conn,
            organisation_id=found.organisation_id,
            url_hash=found.url_hash,
            tag=found.tag,
            variant=found.variant,
            scraped_at=found.scraped_at,
            markdown=found.markdown,
            extracted=found.extracted,
            gone=found.gone,
        )


async def compare(conn: Connection, new: Snapshot, *, modes: Collection[str] = ()) -> TrackedChange:
    """Compare a page with the last scrape of its tag."""
    before = await snapshots.last_snapshot(
        conn,
        organisation_id=new.organisation_id,
        url_hash=new.url_hash,
        tag=new.tag,
        variant=new.variant,
    )
    hidden = await queries.was_unlinked(
        conn, organisation_id=new.organisation_id, url_hash=new.url_hash
    )
    change, found = await _change_status(before, new.markdown, gone=new.gone)
    return TrackedChange(
        previous_scrape_at=None if before is None else before.scraped_at,
        change_status=change,
        visibility="hidden" if hidden else "visible",
        diff=found if GIT_DIFF in modes else None,
        previous_json=before.extracted if before is not None and JSON in modes else None,
    )


async def _change_status(
    before: LastSnapshotRow | None, markdown: str, *, gone: bool
) -> tuple[ChangeStatus, Diff | None]:
    if gone:
        return "removed", None
    if before is None or before.gone:
        return "new", None
    if content_hash(before.markdown) == content_hash(markdown):
        return "same", None
    # A large diff would block the loop.
    found = await asyncio.to_thread(diff, before.markdown, markdown)
    return ("changed", found) if found.changed else ("same", None)
