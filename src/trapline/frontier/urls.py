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
    wanted = list(dict.fromkeys(places))
    if not wanted:
        return {}
    parts = [split_url(url) for _, url in wanted]
    ids = await queries.intern_urls(
        conn,
        organisation_ids=[organisation for organisation, _ in wanted],
        hosts=[part.host for part in parts],
        secures=[part.scheme == "https" for part in parts],
        paths=[part.path for part in parts],
        hashes=[url_hash(url) for _, url in wanted],
    )
    return dict(zip(wanted, ids, strict=True))
