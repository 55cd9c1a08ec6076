"""Typed functions of urls.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from trapline.db.connection import Connection
from trapline.model import OrganisationId, UrlId


class FindHostsRow(Struct, frozen=True, gc=False):
    host_id: int
    organisation_id: OrganisationId
    name: str


class FindUrlsRow(Struct, frozen=True, gc=False):
    url_id: UrlId
    organisation_id: OrganisationId
    hash: bytes


_INTERN_HOSTS: Final = """
-- name: InternHosts
INSERT INTO frontier.host (organisation_id, name)
SELECT DISTINCT organisation_id, name
FROM unnest($1::uuid[], $2::text[]) AS new (organisation_id, name)
ORDER BY organisation_id, name
ON CONFLICT DO NOTHING
"""


async def intern_hosts(
    conn: Connection, *, organisation_ids: Sequence[OrganisationId], names: Sequence[str]
) -> None:
    """Make sure that every host has its row, in one order so that two workers cannot deadlock."""
    await conn.execute(_INTERN_HOSTS, organisation_ids, names)


_FIND_HOSTS: Final = """
-- name: FindHosts
SELECT h.id AS host_id, h.organisation_id, h.name
FROM unnest($1::uuid[], $2::text[]) AS wanted (organisation_id, name)
JOIN frontier.host h USING (organisation_id, name)
"""


async def find_hosts(
    conn: Connection, *, organisation_ids: Sequence[OrganisationId], names: Sequence[str]
) -> list[FindHostsRow]:
    """The ids of hosts that have a row."""
    return [FindHostsRow(*row) for row in await conn.fetch(_FIND_HOSTS, organisation_ids, names)]


_INTERN_URLS: Final = """
-- name: InternUrls
INSERT INTO frontier.url (organisation_id, host_id, secure, path, hash)
SELECT organisation_id, host_id, secure, path, hash
FROM unnest(
    $1::uuid[],
    $2::bigint[],
    $3::boolean[],
    $4::text[],
    $5::bytea[]
) AS new (organisation_id, host_id, secure, path, hash)
ORDER BY organisation_id, hash
ON CONFLICT DO NOTHING
"""


async def intern_urls(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    host_ids: Sequence[int],
    secures: Sequence[bool],
    paths: Sequence[str],
    hashes: Sequence[bytes],
) -> None:
    """Make sure that every URL has its row, sorted by hash so that two workers cannot deadlock."""
    await conn.execute(_INTERN_URLS, organisation_ids, host_ids, secures, paths, hashes)


_FIND_URLS: Final = """
-- name: FindUrls
SELECT u.id AS url_id, u.organisation_id, u.hash
FROM unnest($1::uuid[], $2::bytea[]) AS wanted (organisation_id, hash)
JOIN frontier.url u USING (organisation_id, hash)
"""


async def find_urls(
    conn: Connection, *, organisation_ids: Sequence[OrganisationId], hashes: Sequence[bytes]
) -> list[FindUrlsRow]:
    """The ids of URLs that have a row."""
    return [FindUrlsRow(*row) for row in await conn.fetch(_FIND_URLS, organisation_ids, hashes)]
