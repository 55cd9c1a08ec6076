"""URL rows: each URL once per organisation, found again by the hash of its canonical form."""

from collections.abc import Iterable

from trapline.db.connection import Connection
from trapline.frontier.sql import urls as queries
from trapline.frontier.url import split_url, url_hash
from trapline.model import OrganisationId, UrlId

Place = tuple[OrganisationId, str]
"""A URL of an organisation."""


async def intern(conn: Connection, places: Iterable[Place]) -> dict[Place, UrlId]:
    """Return the id of every URL, made where it was not there yet."""
    wanted = sorted(set(places))
    if not wanted:
        return {}
    parts = [split_url(url) for _, url in wanted]
    hosts = await _hosts(conn, {(o, part.host) for (o, _), part in zip(wanted, parts, strict=True)})
    hashes = {(organisation, url_hash(url)): (organisation, url) for organisation, url in wanted}
    await queries.intern_urls(
        conn,
        organisation_ids=[organisation for organisation, _ in wanted],
        host_ids=[hosts[o, part.host] for (o, _), part in zip(wanted, parts, strict=True)],
        secures=[part.scheme == "https" for part in parts],
        paths=[part.path for part in parts],
        hashes=[digest for _, digest in hashes],
    )
    rows = await queries.find_urls(
        conn,
        organisation_ids=[organisation for organisation, _ in hashes],
        hashes=[digest for _, digest in hashes],
    )
    return {hashes[row.organisation_id, row.hash]: row.url_id for row in rows}


async def _hosts(
    conn: Connection, names: set[tuple[OrganisationId, str]]
) -> dict[tuple[OrganisationId, str], int]:
    ordered = sorted(names)
    organisations = [organisation for organisation, _ in ordered]
    hosts = [name for _, name in ordered]
    found = await queries.find_hosts(conn, organisation_ids=organisations, names=hosts)
    if len(found) < len(ordered):
        await queries.intern_hosts(conn, organisation_ids=organisations, names=hosts)
        found = await queries.find_hosts(conn, organisation_ids=organisations, names=hosts)
    return {(row.organisation_id, row.name): row.host_id for row in found}
