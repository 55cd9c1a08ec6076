"""Owned references: ids from outside resolve under the caller's organisation, or they do not exist."""

from trapline.db import tenancy
from trapline.db.connection import Connection
from trapline.errors import NotFound
from trapline.knowledge import applications, sources
from trapline.model import ApplicationId, MemberId, OrganisationId, SiteId, SourceId
from trapline.pipeline.options import VisitOptions
from trapline.store import sites


async def require_options(
    conn: Connection, organisation_id: OrganisationId, options: VisitOptions
) -> None:
    """NotFound if options name a site or a source that the organisation does not have."""
    await require_site(conn, organisation_id, options.site_id)
    await require_source(conn, organisation_id, options.source_id)


async def require_site(
    conn: Connection, organisation_id: OrganisationId, site_id: SiteId | None
) -> None:
    if site_id is not None:
        await sites.find(conn, organisation_id, str(site_id))


async def require_source(
    conn: Connection, organisation_id: OrganisationId, source_id: SourceId | None
) -> None:
    if source_id is not None:
        await sources.get(conn, organisation_id, source_id)


async def require_application(
    conn: Connection, organisation_id: OrganisationId, application_id: ApplicationId | None
) -> None:
    if application_id is not None:
        await applications.find(conn, organisation_id, str(application_id))


async def require_member(
    conn: Connection, organisation_id: OrganisationId, member_id: MemberId | None
) -> None:
    if member_id is not None and not await tenancy.has_member(conn, organisation_id, member_id):
        raise NotFound(f"There is no member {member_id} in this organisation.")
