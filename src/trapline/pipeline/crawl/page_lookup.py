"""Micro-batched look-up of pages that are about to be visited.

Under load one statement serves all pages that were claimed together; a page alone waits for nobody.
"""

from collections.abc import Sequence
from typing import Final

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.frontier.canonical_url import origin_of, url_hash
from trapline.model import OrganisationId, SiteId
from trapline.pipeline.sql import page_lookup as queries
from trapline.pipeline.sql.page_lookup import KnownPagesRow
from trapline.queue.micro_batch import MicroBatch

Wanted = tuple[OrganisationId, SiteId | None, str, bytes]

# More than a worker has tasks.
_MOST: Final = 10_000


class PageLookup:
    """Finds what earlier visits left of a page."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch = MicroBatch(self._find, most=_MOST)

    async def find(
        self,
        organisation_id: OrganisationId,
        site_id: SiteId | None,
        url: str,
        variant: bytes = b"",
    ) -> KnownPagesRow:
        """Return what is known of a URL in a site, or in the implicit one of its origin and variant.

        One that was never visited has no `last_visit_at`; a site that is not there yet, no id.
        """
        return await self._batch.add((organisation_id, site_id, url, variant))

    async def _find(self, wanted: Sequence[Wanted]) -> list[KnownPagesRow]:
        pages = list(dict.fromkeys(wanted))

        async def look(conn: Connection) -> list[KnownPagesRow]:
            return await queries.known_pages(
                conn,
                organisation_ids=[organisation_id for organisation_id, _, _, _ in pages],
                site_ids=[site_id for _, site_id, _, _ in pages],
                origins=[origin_of(url) for _, _, url, _ in pages],
                variants=[variant for _, _, _, variant in pages],
                hashes=[url_hash(url) for _, _, url, _ in pages],
            )

        rows = {pages[row.position - 1]: row for row in await self._database.run_statement(look)}
        return [rows[page] for page in wanted]
