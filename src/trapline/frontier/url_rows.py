"""URL rows: each URL once per organisation, found again by the hash of its canonical form."""

from collections.abc import Iterable

from trapline.db.connection import Connection
from trapline.frontier.canonical_url import split_url, url_hash
from trapline.frontier.sql import urls as queries
from trapline.model import OrganisationId, UrlId

OwnedUrl = tuple[OrganisationId, str]
"""A URL of an organisation."""


async def intern(conn: Connection, urls: Iterable[OwnedUrl]) -> dict[OwnedUrl, UrlId]:
    """Return the id of every URL; new URLs get a row."""
    distinct = list(dict.fromkeys(urls))
    if not distinct:
        return {}
    parts = [split_url(url) for _, url in distinct]
    ids = await queries.intern_urls(
        conn,
        organisation_ids=[organisation for organisation, _ in distinct],
        hosts=[part.host for part in parts],
        secures=[part.scheme == "https" for part in parts],
        paths=[part.path for part in parts],
        hashes=[url_hash(url) for _, url in distinct],
    )
    return dict(zip(distinct, ids, strict=True))
