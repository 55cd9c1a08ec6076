"""`/api/pages`: pages, their versions, their state at a time, and diffs between versions."""

import asyncio
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from trapline.api import pagination
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import Reader, Tenant
from trapline.db.keyset import FIRST_NUMBER, Order, Size, Start
from trapline.errors import NotFound
from trapline.frontier.patterns import Patterns
from trapline.model import JobId, PageId, SiteId
from trapline.pipeline.crawl import change_detection
from trapline.pipeline.reports import page_list
from trapline.pipeline.sql import pages as queries
from trapline.pipeline.sql.pages import PageRow, VersionRow
from trapline.queue import jobs
from trapline.store.sql import sites as site_queries

router = APIRouter(prefix="/api/pages", tags=["pages"])

Hex = Annotated[
    str,
    BeforeValidator(lambda value: value.hex() if isinstance(value, bytes) else value),
    Field(description="SHA-256, in hexadecimal."),
]
VersionNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]
_PAGES_OF_JOB = Order(queries.pages_of_job, ("after",), lambda row: row.task_id, FIRST_NUMBER)
_VERSIONS = Order(
    queries.list_versions, ("before",), lambda row: row.number, Start(2**31 - 1, Size)
)


class SitePage(BaseModel):
    """A URL's place in a site, with what its latest version is."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    id: Annotated[UUID, Field(validation_alias="page_id")]
    site_id: UUID
    url: str
    url_hash: Hex
    content_hash: Hex | None
    title: str | None
    status: int | None
    language: str | None
    page_type: str | None
    version: Annotated[int, Field(validation_alias="version_number")]
    first_seen_at: datetime
    last_seen_at: datetime
    changed_at: datetime | None
    gone_at: datetime | None
    is_duplicate: bool
    duplicate_of: UUID | None
    similarity: Annotated[
        int | None, Field(description="To the content that stands for its group, 0 to 100.")
    ]
    by_hand: Annotated[bool, Field(description="Someone decided whose duplicate it is.")]

    @classmethod
    def of(cls, row: PageRow) -> "SitePage":
        fields = {name: getattr(row, name) for name in row.__struct_fields__}
        return cls.model_validate(fields | {"is_duplicate": row.duplicate_of is not None})


class SeenPage(BaseModel):
    """A page as one job saw it."""

    model_config = ConfigDict(from_attributes=True)

    page_id: UUID
    site_id: UUID
    url: str
    change: Annotated[str | None, Field(examples=["changed"])]
    version: Annotated[int, Field(validation_alias="number")]
    title: str | None
    status: int | None
    content_hash: Hex
    finished_at: datetime


class PageVersion(BaseModel):
    """A version without its content."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    fetched_at: datetime
    job_id: UUID | None
    visit_id: int
    content_hash: Hex
    extractor_version: int
    status: int | None
    title: str | None
    language: str | None
    page_type: str | None


class VersionInList(PageVersion):
    """A version of a list, with its length."""

    characters: int


class WholeVersion(PageVersion):
    """A version with its content."""

    text: str
    markdown: str
    metadata: dict[str, Any]
    links: list[Any]
    warning: str | None


class Difference(BaseModel):
    """What differs between two versions of a page, side by side and as a diff."""

    old: WholeVersion
    new: WholeVersion
    changed: bool
    text: Annotated[str, Field(description="A unified diff of the markdown.")]
    files: list[dict[str, Any]]
    added_lines: int
    removed_lines: int
    added_words: int
    removed_words: int
    summary: Annotated[str, Field(examples=["2 lines added, 1 removed."])]


class PageDocument(BaseModel):
    """The bytes that a version was made from."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    fetched_at: datetime
    sha256: Hex
    size: int
    place: str
    media_type: str | None


@router.get("")
async def list_pages(
    conn: Tenant,
    principal: Reader,
    site_id: Annotated[UUID | None, Query()] = None,
    url: Annotated[str | None, Query(max_length=16_000)] = None,
    seen_since: Annotated[AwareDatetime | None, Query()] = None,
    seen_until: Annotated[AwareDatetime | None, Query()] = None,
    gone: Annotated[bool | None, Query()] = None,
    duplicate: Annotated[bool | None, Query()] = None,
    sort: page_list.Sort = "oldest",
    cursor: Cursor = None,
    most: Most = 100,
) -> Page[SitePage]:
    """List pages by site, URL and time: as they were found, or what changed last first."""
    pages = page_list.pages_of(
        principal.organisation_id,
        site_id=None if site_id is None else SiteId(site_id),
        url=url,
        seen_since=seen_since,
        seen_until=seen_until,
        gone=gone,
        duplicate=duplicate,
    )
    rows, following = await pagination.read_page(conn, pages, sort, cursor, most)
    return Page(items=[SitePage.of(row) for row in rows], next=following)


@router.get("/of-job/{job_id}")
async def list_pages_of_job(
    conn: Tenant, principal: Reader, job_id: UUID, cursor: Cursor = None, most: Most = 100
) -> Page[SeenPage]:
    """List the pages that a job saw, with what it found of each."""
    del principal
    await jobs.get(conn, JobId(job_id))
    filters = {"job_id": JobId(job_id)}
    rows, following = await pagination.read_order(conn, _PAGES_OF_JOB, filters, cursor, most)
    return Page(items=[SeenPage.model_validate(row) for row in rows], next=following)


@router.get("/{page_id}")
async def get_page(conn: Tenant, principal: Reader, page_id: UUID) -> SitePage:
    """Show a page."""
    del principal
    return SitePage.of(await page_list.page(conn, PageId(page_id)))


@router.get("/{page_id}/versions")
async def list_versions(
    conn: Tenant, principal: Reader, page_id: UUID, cursor: Cursor = None, most: Most = 50
) -> Page[VersionInList]:
    """List a page's versions, newest first."""
    del principal
    page = await page_list.page(conn, PageId(page_id))
    filters = {"page_id": page.page_id}
    rows, following = await pagination.read_order(conn, _VERSIONS, filters, cursor, most)
    return Page(items=[VersionInList.model_validate(row) for row in rows], next=following)


@router.get("/{page_id}/versions/{number}")
async def get_version(
    conn: Tenant, principal: Reader, page_id: UUID, number: VersionNumber
) -> WholeVersion:
    """Show a version with its content."""
    del principal
    page = await page_list.page(conn, PageId(page_id))
    return WholeVersion.model_validate(await _version(conn, page, number))


@router.get("/{page_id}/at")
async def get_page_at(
    conn: Tenant, principal: Reader, page_id: UUID, time: Annotated[AwareDatetime, Query()]
) -> WholeVersion:
    """Show a page as it was at a time."""
    del principal
    page = await page_list.page(conn, PageId(page_id))
    row = await queries.version_at(conn, page_id=page.page_id, at=time)
    if row is None:
        raise NotFound(f"The page was first seen later, at {page.first_seen_at.isoformat()}.")
    return WholeVersion.model_validate(row)


@router.get("/{page_id}/diff")
async def compare_versions(
    conn: Tenant,
    principal: Reader,
    page_id: UUID,
    old: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    new: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Difference:
    """Show two versions side by side; without numbers, the latest and the one before.

    Lines that the site calls noise are left out of the difference.
    """
    del principal
    page = await page_list.page(conn, PageId(page_id))
    later = page.version_number if new is None else new
    earlier = max(1, later - 1) if old is None else old
    before, after = await _version(conn, page, earlier), await _version(conn, page, later)
    return await difference(before, after, await noise_of(conn, page.site_id))


@router.get("/{page_id}/documents")
async def list_documents(
    conn: Tenant, principal: Reader, page_id: UUID, most: Most = 50
) -> list[PageDocument]:
    """List the files that a page's versions were made from, newest first."""
    del principal
    page = await page_list.page(conn, PageId(page_id))
    rows = await queries.documents_of(conn, page_id=page.page_id, most=most)
    return [PageDocument.model_validate(row) for row in rows]


async def difference(before: VersionRow, after: VersionRow, noise: Patterns) -> Difference:
    """Compare two versions as they are shown."""
    # A large diff takes its time, and the loop has others to answer.
    diff = await asyncio.to_thread(
        change_detection.diff_without_noise, before.markdown, after.markdown, noise
    )
    return Difference(
        old=WholeVersion.model_validate(before),
        new=WholeVersion.model_validate(after),
        changed=diff.changed,
        text=diff.text,
        files=diff.files,
        added_lines=diff.added_lines,
        removed_lines=diff.removed_lines,
        added_words=diff.added_words,
        removed_words=diff.removed_words,
        summary=change_detection.summary(change_detection.extent(diff)),
    )


async def noise_of(conn: Tenant, site_id: SiteId | None) -> Patterns:
    """Return the lines that a site wants left out of its differences."""
    site = None if site_id is None else await site_queries.get_site(conn, site_id=site_id)
    return Patterns(tuple(site.config.get("ignore_patterns", ())) if site is not None else ())


async def _version(conn: Tenant, page: PageRow, number: int) -> VersionRow:
    row = await queries.get_version(conn, page_id=page.page_id, number=number)
    if row is None:
        raise NotFound(f"The page has no version {number}, or not any more.")
    return row
