"""`/pages`: the list, a page with its versions, links and capture, and diffs of any two versions."""

import asyncio
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from trapline.api.native.content import pages as api
from trapline.api.pagination import Cursor
from trapline.dashboard import diffs, rendering
from trapline.dashboard.viewer import CurrentViewer, Reading
from trapline.db.connection import Connection
from trapline.db.tenancy import Principal
from trapline.errors import NotFound, VisitFailed
from trapline.frontier.canonical_url import typed_url, url_hash
from trapline.model import PageId, SiteId
from trapline.pipeline.crawl import change_detection
from trapline.pipeline.reports import page_list
from trapline.pipeline.sql import pages as queries
from trapline.pipeline.sql import provenance
from trapline.store.blobs import BlobStore

router = APIRouter(prefix="/pages")

PAGE: Final = 50
_MOST_LINKS: Final = 300
_SITE_PAGES_READ: Final = 500
_LONGEST_CAPTURE: Final = 4_000_000
# The capture runs nothing, loads nothing and shares no origin with us.
CAPTURE_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:;"
    " frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
VersionNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]
Tab = Literal["markdown", "text", "metadata", "links", "capture"]


@router.get("")
async def list_pages(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    site_id: UUID | None = None,
    job_id: UUID | None = None,
    url: Annotated[str | None, Query(max_length=16_000)] = None,
    gone: bool | None = None,
    duplicate: bool | None = None,
    sort: page_list.Sort = "changed",
    cursor: Cursor = None,
) -> Response:
    """List pages of all sites, a site, a job or a URL."""
    if job_id is not None:
        seen = await api.list_pages_of_job(conn, viewer.principal, job_id, cursor, PAGE)
        return rendering.page(request, viewer, "pages_of_job.html", page=seen, job_id=job_id)
    page = await api.list_pages(
        conn,
        viewer.principal,
        site_id=site_id,
        url=url,
        gone=gone,
        duplicate=duplicate,
        sort=sort,
        cursor=cursor,
        most=PAGE,
    )
    filters = {
        "site_id": site_id,
        "url_filter": url,
        "gone": gone,
        "duplicate": duplicate,
        "sort": sort,
    }
    return rendering.page(request, viewer, "pages.html", page=page, **filters)


@router.get("/{page_id}")
async def show_page(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    page_id: UUID,
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    tab: Tab = "markdown",
    cursor: Cursor = None,
) -> Response:
    """Show a page: a version's content, and the list of versions."""
    shown = await api.get_page(conn, viewer.principal, page_id)
    versions = await api.list_versions(conn, viewer.principal, page_id, cursor=cursor, most=20)
    number = version or shown.version
    content = None
    if number:
        content = await api.get_version(conn, viewer.principal, page_id, number)
    links = {}
    if tab == "links" and content is not None:
        links = await _links(conn, viewer.principal, shown, content)
    return rendering.page(
        request,
        viewer,
        "page.html",
        shown=shown,
        versions=versions,
        content=content,
        tab=tab,
        **{"outgoing": [], "incoming": [], "known": {}} | links,
    )


async def _links(
    conn: Connection, principal: Principal, shown: api.SitePage, content: api.WholeVersion
) -> dict[str, Any]:
    """Return the links of a version, and the pages of its site that link to it."""
    outgoing = list(map(link_of, content.links[:_MOST_LINKS]))
    rows = await provenance.pages_of_urls(
        conn,
        site_id=SiteId(shown.site_id),
        organisation_id=principal.organisation_id,
        url_hashes=[digest for digest in map(_digest, outgoing) if digest is not None],
    )
    incoming = await provenance.pages_linking_to(
        conn,
        site_id=SiteId(shown.site_id),
        url=shown.url,
        among=_SITE_PAGES_READ,
        most=PAGE,
    )
    return {
        "outgoing": outgoing,
        "incoming": incoming,
        "known": {row.url: row.page_id for row in rows},
    }


def link_of(link: Any) -> str:
    """Return the URL of a stored link, which is a string or has one."""
    return str(link.get("url", "")) if isinstance(link, dict) else str(link)


def _digest(url: str) -> bytes | None:
    try:
        return url_hash(typed_url(url))
    except VisitFailed:
        return None


@router.get("/{page_id}/diff")
async def show_diff(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    page_id: UUID,
    old: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    new: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    view: Literal["side", "inline"] = "side",
) -> Response:
    """Show what differs between two versions."""
    context = await diff_of(conn, viewer.principal, page_id, old, new)
    versions = await api.list_versions(conn, viewer.principal, page_id, most=100)
    return rendering.page(
        request, viewer, "page_diff.html", **context, view=view, versions=versions.items
    )


async def diff_of(
    conn: Connection, principal: Principal, page_id: UUID, old: int | None, new: int | None
) -> dict[str, Any]:
    shown = await api.get_page(conn, principal, page_id)
    found = await api.compare_versions(conn, principal, page_id, old=old, new=new)
    noise = await api.noise_of(conn, SiteId(shown.site_id))
    # A large diff takes its time, and the loop has others to answer.
    rows = await asyncio.to_thread(
        diffs.diff_rows,
        change_detection.without_noise(found.old.markdown, noise),
        change_detection.without_noise(found.new.markdown, noise),
    )
    return {"shown": shown, "found": found, "rows": rows}


@router.get("/{page_id}/versions/{number}/capture")
async def show_capture(
    request: Request, conn: Reading, viewer: CurrentViewer, page_id: UUID, number: VersionNumber
) -> Response:
    """Answer with the bytes of a version as they were: sandboxed, without script and without requests."""
    row = await queries.get_version(conn, page_id=PageId(page_id), number=number)
    if row is None or row.sha256 is None:
        raise NotFound("The bytes of that version are no longer stored.")
    blobs: BlobStore = request.app.state.blobs
    body = await blobs.get(conn, row.sha256)
    return Response(
        body[:_LONGEST_CAPTURE],
        media_type=_capture_type(row.content_type),
        headers={
            "Content-Security-Policy": CAPTURE_POLICY,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
        },
    )


def _capture_type(content_type: str | None) -> str:
    """Return a type that a browser renders without a plug-in; everything else is shown as text."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type in {"text/html", "application/xhtml+xml"}:
        return content_type or media_type
    return "text/plain; charset=utf-8"
