"""`/api/changes`: what was seen to change, as a list, and as feeds that readers subscribe to."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AwareDatetime, BaseModel, Field

from trapline.api import feeds, paging
from trapline.api.access import Reader, Tenant
from trapline.api.native.pages import Difference, difference, noise_of
from trapline.api.paging import Cursor, Most, Number, Page
from trapline.errors import NotFound
from trapline.model import JobId, OrganisationId, PageId, SiteId
from trapline.pipeline import chronicle, comparing
from trapline.pipeline.sql import changes as queries
from trapline.pipeline.sql import pages as page_queries
from trapline.pipeline.sql.changes import ChangeRow
from trapline.store.changes import Extent, Status

router = APIRouter(prefix="/api/changes", tags=["changes"])

_LAST = 2**63 - 1
_FEED = 100


class Change(BaseModel):
    """A page was seen to change: by a visit, by its absence from a whole crawl, or by a watcher."""

    id: int
    site_id: UUID | None
    page_id: UUID | None
    url: str
    title: str | None
    status: Status
    source: chronicle.Source
    detected_at: datetime
    version: Annotated[int | None, Field(description="The version that it led to.")]
    job_id: UUID | None
    added_lines: int | None
    removed_lines: int | None
    added_words: int | None
    removed_words: int | None
    summary: Annotated[str, Field(examples=["2 lines added, 1 removed."])]
    watch_id: str | None
    snapshot_url: str | None
    rescrape_job_id: UUID | None
    rescrape_status: Annotated[str | None, Field(examples=["completed"])]
    indexed_at: datetime | None
    metadata: dict[str, Any]

    @classmethod
    def of(cls, row: ChangeRow) -> "Change":
        fields = {name: getattr(row, name) for name in row.__struct_fields__}
        metadata = row.metadata if isinstance(row.metadata, dict) else {"value": row.metadata}
        return cls.model_validate(
            fields
            | {"version": row.version_number, "summary": summary_of(row), "metadata": metadata}
        )


class Wanted(BaseModel):
    """Which changes a list or a feed is of."""

    site_id: UUID | None = None
    page_id: Annotated[UUID | None, Field(description="Only with its site_id.")] = None
    job_id: UUID | None = None
    status: Status | None = None
    source: chronicle.Source | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None

    def of(self, organisation_id: OrganisationId) -> chronicle.Wanted:
        return chronicle.Wanted(
            organisation_id,
            None if self.site_id is None else SiteId(self.site_id),
            None if self.page_id is None else PageId(self.page_id),
            None if self.job_id is None else JobId(self.job_id),
            self.status,
            self.source,
            self.since,
            self.until,
        )


@router.get("")
async def list_changes(
    conn: Tenant,
    who: Reader,
    wanted: Annotated[Wanted, Query()],
    sort: chronicle.Sort = "newest",
    cursor: Cursor = None,
    most: Most = 100,
) -> Page[Change]:
    """List changes, newest or oldest first."""
    rows = await chronicle.listed(
        conn,
        wanted.of(who.organisation_id),
        sort,
        after=paging.decode(cursor, Number),
        most=most + 1,
    )
    following = paging.cut(rows, most, lambda row: row.id)
    return Page(items=[Change.of(row) for row in rows[:most]], next=following)


@router.get("/feed.json", response_class=Response, responses={200: {"content": feeds.JSON_FEED}})
async def json_feed(
    conn: Tenant, who: Reader, request: Request, wanted: Annotated[Wanted, Query()]
) -> Response:
    """Answer with the latest changes as a JSON Feed 1.1."""
    rows = await chronicle.listed(conn, wanted.of(who.organisation_id), "newest", most=_FEED)
    body = feeds.json_feed(_entries(rows, request), title=_title(wanted), url=str(request.url))
    return Response(body, media_type="application/feed+json")


@router.get("/feed.atom", response_class=Response, responses={200: {"content": feeds.ATOM_FEED}})
async def atom_feed(
    conn: Tenant, who: Reader, request: Request, wanted: Annotated[Wanted, Query()]
) -> Response:
    """Answer with the latest changes as an Atom feed (RFC 4287)."""
    rows = await chronicle.listed(conn, wanted.of(who.organisation_id), "newest", most=_FEED)
    body = feeds.atom_feed(
        _entries(rows, request), title=_title(wanted), url=str(request.url), now=datetime.now(UTC)
    )
    return Response(body, media_type="application/atom+xml")


@router.get("/{change_id}")
async def get_change(
    conn: Tenant, who: Reader, change_id: Annotated[int, Path(ge=1, le=_LAST)]
) -> Change:
    """Show a change."""
    del who
    return Change.of(await _change(conn, change_id))


@router.get("/{change_id}/diff")
async def get_difference(
    conn: Tenant, who: Reader, change_id: Annotated[int, Path(ge=1, le=_LAST)]
) -> Difference:
    """Show what a change was, between the version before and the one that it led to."""
    del who
    row = await _change(conn, change_id)
    if row.version_id is None or row.previous_version_id is None:
        raise NotFound("This change has no two versions that could be compared.")
    before = await page_queries.version_by_id(conn, version_id=row.previous_version_id)
    after = await page_queries.version_by_id(conn, version_id=row.version_id)
    if before is None or after is None:
        raise NotFound("A version of this change is not kept any more.")
    return await difference(before, after, await noise_of(conn, row.site_id))


def summary_of(row: ChangeRow) -> str:
    """Say in a sentence what happened."""
    if row.diff_summary is not None:
        return row.diff_summary
    if row.status == "changed" and row.added_lines is not None:
        return comparing.summary(
            Extent(
                row.added_lines,
                row.removed_lines or 0,
                row.added_words or 0,
                row.removed_words or 0,
            )
        )
    return _SENTENCES[row.status, row.source == "sweep"]


_SENTENCES = {
    ("new", False): "The page is new.",
    ("same", False): "Only noise changed.",
    ("changed", False): "The page changed.",
    ("removed", False): "The server has the page no more.",
    ("removed", True): "A whole crawl did not find the page again.",
}


async def _change(conn: Tenant, change_id: int) -> ChangeRow:
    row = await queries.get_change(conn, change_id=change_id)
    if row is None:
        raise NotFound(f"There is no change {change_id}.")
    return row


def _title(wanted: Wanted) -> str:
    return "Changes" if wanted.site_id is None else f"Changes of site {wanted.site_id}"


def _entries(rows: Sequence[ChangeRow], request: Request) -> list[feeds.Entry]:
    base = str(request.base_url).rstrip("/")
    return [
        feeds.Entry(
            id=f"{base}/api/changes/{row.id}",
            url=row.url,
            title=f"{row.status}: {row.title or row.url}",
            summary=summary_of(row),
            at=row.detected_at,
            tags=(row.status, row.source),
        )
        for row in rows
    ]
