"""`/api/changes`: detected changes, as a list and as web feeds."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AwareDatetime, BaseModel, Field

from trapline.api import pagination, syndication
from trapline.api.native.content.pages import Difference, difference, noise_of
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import Reader, Tenant
from trapline.db.keyset import KeysetList
from trapline.errors import NotFound
from trapline.model import JobId, OrganisationId, PageId, SiteId
from trapline.pipeline.crawl import change_detection
from trapline.pipeline.reports import change_list
from trapline.pipeline.sql import changes as queries
from trapline.pipeline.sql import pages as page_queries
from trapline.pipeline.sql.changes import ChangeRow
from trapline.store.changes import ChangeSource, ChangeStatus, Extent

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
    status: ChangeStatus
    source: ChangeSource
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


class ChangeFilter(BaseModel):
    """Which changes a list or a feed is of."""

    site_id: UUID | None = None
    page_id: Annotated[UUID | None, Field(description="Only with its site_id.")] = None
    job_id: UUID | None = None
    status: ChangeStatus | None = None
    source: ChangeSource | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None

    def of(self, organisation_id: OrganisationId) -> KeysetList[change_list.Sort, ChangeRow]:
        return change_list.changes_of(
            organisation_id,
            site_id=None if self.site_id is None else SiteId(self.site_id),
            page_id=None if self.page_id is None else PageId(self.page_id),
            job_id=None if self.job_id is None else JobId(self.job_id),
            status=self.status,
            source=self.source,
            since=self.since,
            until=self.until,
        )


@router.get("")
async def list_changes(
    conn: Tenant,
    principal: Reader,
    filters: Annotated[ChangeFilter, Query()],
    sort: change_list.Sort = "newest",
    cursor: Cursor = None,
    most: Most = 100,
) -> Page[Change]:
    """List changes, newest or oldest first."""
    changes = filters.of(principal.organisation_id)
    rows, following = await pagination.read_page(conn, changes, sort, cursor, most)
    return Page(items=[Change.of(row) for row in rows], next=following)


@router.get(
    "/feed.json", response_class=Response, responses={200: {"content": syndication.JSON_FEED}}
)
async def json_feed(
    conn: Tenant, principal: Reader, request: Request, filters: Annotated[ChangeFilter, Query()]
) -> Response:
    """Answer with the latest changes as a JSON Feed 1.1."""
    rows = await filters.of(principal.organisation_id).read(conn, "newest", most=_FEED)
    body = syndication.json_feed(
        _entries(rows, request), title=_title(filters), url=str(request.url)
    )
    return Response(body, media_type="application/feed+json")


@router.get(
    "/feed.atom", response_class=Response, responses={200: {"content": syndication.ATOM_FEED}}
)
async def atom_feed(
    conn: Tenant, principal: Reader, request: Request, filters: Annotated[ChangeFilter, Query()]
) -> Response:
    """Answer with the latest changes as an Atom feed (RFC 4287)."""
    rows = await filters.of(principal.organisation_id).read(conn, "newest", most=_FEED)
    body = syndication.atom_feed(
        _entries(rows, request), title=_title(filters), url=str(request.url), now=datetime.now(UTC)
    )
    return Response(body, media_type="application/atom+xml")


@router.get("/{change_id}")
async def get_change(
    conn: Tenant, principal: Reader, change_id: Annotated[int, Path(ge=1, le=_LAST)]
) -> Change:
    """Show a change."""
    del principal
    return Change.of(await _change(conn, change_id))


@router.get("/{change_id}/diff")
async def get_difference(
    conn: Tenant, principal: Reader, change_id: Annotated[int, Path(ge=1, le=_LAST)]
) -> Difference:
    """Show what a change was, between the version before and the one that it led to."""
    del principal
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
        return change_detection.summary(
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


def _title(filters: ChangeFilter) -> str:
    return "Changes" if filters.site_id is None else f"Changes of site {filters.site_id}"


def _entries(rows: Sequence[ChangeRow], request: Request) -> list[syndication.Entry]:
    base = str(request.base_url).rstrip("/")
    return [
        syndication.Entry(
            id=f"{base}/api/changes/{row.id}",
            url=row.url,
            title=f"{row.status}: {row.title or row.url}",
            summary=summary_of(row),
            at=row.detected_at,
            tags=(row.status, row.source),
        )
        for row in rows
    ]
