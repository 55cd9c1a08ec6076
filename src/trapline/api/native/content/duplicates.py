"""`/api/duplicates`: groups of duplicate pages, and the decisions of people about them."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from trapline.api import pagination
from trapline.api.native.content.pages import Hex, SitePage
from trapline.api.pagination import Cursor, Most, Page
from trapline.api.principal import Reader, Tenant, Writer
from trapline.errors import NotFound
from trapline.model import PageId, SiteId
from trapline.pipeline.reports import duplicate_list, page_list
from trapline.pipeline.sql import duplicates as queries
from trapline.store import duplicates, sites
from trapline.store.sql import duplicates as store_queries

router = APIRouter(prefix="/api/duplicates", tags=["duplicates"])

SiteReference = Annotated[str, Query(max_length=300, description="A site, by id or name.")]


class DuplicateGroup(BaseModel):
    """Pages whose contents are alike; the first one is the original."""

    model_config = ConfigDict(from_attributes=True)

    id: Annotated[int, Field(validation_alias="group_id")]
    site_id: UUID
    pages: int
    original_id: UUID
    original_url: str
    content_hash: Hex
    occurrence_count: Annotated[int, Field(description="How often its first content was seen.")]
    first_seen_at: datetime
    last_seen_at: datetime


class Duplicate(BaseModel):
    """A page of a group."""

    model_config = ConfigDict(from_attributes=True)

    page_id: UUID
    url: str
    url_hash: Hex
    content_hash: Hex | None
    similarity: int | None
    by_hand: bool
    first_seen_at: datetime
    last_seen_at: datetime


class ContentCount(BaseModel):
    """How often a content was seen in a site."""

    model_config = ConfigDict(from_attributes=True)

    content_hash: Hex
    first_seen_page_id: UUID
    occurrence_count: int
    created_at: datetime
    last_seen_at: datetime


class Decision(BaseModel):
    """Whose duplicate a page is; null: nobody's."""

    model_config = ConfigDict(extra="forbid")

    duplicate_of: UUID | None


@router.get("")
async def list_groups(
    conn: Tenant,
    principal: Reader,
    site: SiteReference,
    sort: duplicate_list.Sort = "oldest",
    cursor: Cursor = None,
    most: Most = 50,
) -> Page[DuplicateGroup]:
    """List the groups of a site that have more than one page: by age, or the largest first."""
    row = await sites.find(conn, principal.organisation_id, site)
    groups = duplicate_list.groups_of(row.id)
    rows, following = await pagination.read_page(conn, groups, sort, cursor, most)
    return Page(items=[DuplicateGroup.model_validate(row) for row in rows], next=following)


@router.get("/contents/{content_hash}")
async def get_content(
    conn: Tenant,
    principal: Reader,
    content_hash: Annotated[str, Path(pattern="^[0-9a-f]{64}$")],
    site: SiteReference,
) -> ContentCount:
    """Tell how often a content was seen in a site, and where first."""
    row = await sites.find(conn, principal.organisation_id, site)
    content = await store_queries.get_content(
        conn, site_id=row.id, content_hash=bytes.fromhex(content_hash)
    )
    if content is None:
        raise NotFound("That content was not seen in this site, or was not counted yet.")
    return ContentCount.model_validate(content)


@router.get("/{group_id}")
async def list_duplicates(
    conn: Tenant,
    principal: Reader,
    group_id: Annotated[int, Path(ge=1, le=2**63 - 1)],
    site: SiteReference,
    most: Most = 100,
) -> list[Duplicate]:
    """List the pages of a group, the original first."""
    row = await sites.find(conn, principal.organisation_id, site)
    rows = await queries.members_of(conn, site_id=SiteId(row.id), group_id=group_id, most=most)
    if not rows:
        raise NotFound(f"There is no group {group_id}.")
    return [Duplicate.model_validate(row) for row in rows]


@router.put("/pages/{page_id}")
async def decide(conn: Tenant, principal: Writer, page_id: UUID, decision: Decision) -> SitePage:
    """Say by hand whose duplicate a page is. Nothing that is found later changes it."""
    del principal
    other = None if decision.duplicate_of is None else PageId(decision.duplicate_of)
    await duplicates.set_duplicate_of(conn, PageId(page_id), other)
    return SitePage.of(await page_list.page(conn, PageId(page_id)))


@router.delete("/pages/{page_id}")
async def undecide(conn: Tenant, principal: Writer, page_id: UUID) -> SitePage:
    """Forget what was decided by hand: what was found holds again."""
    del principal
    await duplicates.clear_decision(conn, PageId(page_id))
    return SitePage.of(await page_list.page(conn, PageId(page_id)))
