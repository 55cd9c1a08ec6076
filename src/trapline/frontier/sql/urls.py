"""Typed functions of urls.sql, made by `make sql`: edit that file instead."""

from collections.abc import Sequence
from typing import Final

from trapline.db.connection import Connection
from trapline.model import OrganisationId, UrlId

_INTERN_URLS: Final = """
-- name: InternUrls
SELECT frontier.intern_urls(
    $1::uuid[],
    $2::text[],
    $3::boolean[],
    $4::text[],
    $5::bytea[]
) AS "url_ids!"
"""


async def intern_urls(
    conn: Connection,
    *,
    organisation_ids: Sequence[OrganisationId],
    hosts: Sequence[str],
    secures: Sequence[bool],
    paths: Sequence[str],
    hashes: Sequence[bytes],
) -> list[UrlId]:
    """The ids of URLs in their order, made where they were not there yet."""
    value: list[UrlId] = await conn.fetchval(
        _INTERN_URLS, organisation_ids, hosts, secures, paths, hashes
    )
    return value
