"""Sites. Who names none gets the implicit one of their organisation and host."""

from trapline.db.connection import Connection
from trapline.errors import Unavailable
from trapline.model import OrganisationId, SiteId
from trapline.store.sql import sites as queries


async def implicit(conn: Connection, organisation_id: OrganisationId, origin: str) -> SiteId:
    """Return the site of an origin such as `https://example.com`, made on first use."""
    row = await queries.implicit_site(conn, organisation_id=organisation_id, base_url=origin)
    if row is None:
        await queries.ensure_site(
            conn, organisation_id=organisation_id, name=origin, base_url=origin
        )
        row = await queries.implicit_site(conn, organisation_id=organisation_id, base_url=origin)
    if row is None:
        raise Unavailable(f"The site of {origin} could not be made.")
    return row.id
