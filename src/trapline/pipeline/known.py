"""What is known of the pages that are about to be visited, looked up for many of them at once.

Whoever asks while a look is under way goes into the next one: under load that is one statement for
all pages that were claimed together, and a page alone still waits for nobody.
"""

import asyncio
from dataclasses import dataclass, field

from trapline.db.pool import Database
from trapline.frontier.url import url_hash
from trapline.model import OrganisationId, SiteId
from trapline.pipeline.sql import known as queries
from trapline.pipeline.sql.known import KnownPagesRow

Wanted = tuple[OrganisationId, SiteId, bytes]
Found = dict[Wanted, KnownPagesRow]


@dataclass(slots=True)
class KnownPages:
    """Finds what earlier visits left of a page."""

    database: Database
    _wanted: set[Wanted] = field(default_factory=set)
    _next: asyncio.Task[Found] | None = None
    _under_way: asyncio.Task[Found] | None = None

    async def find(
        self, organisation_id: OrganisationId, site_id: SiteId, url: str
    ) -> KnownPagesRow | None:
        """Return what is known of a URL in a site; None if it was never visited."""
        wanted = (organisation_id, site_id, url_hash(url))
        self._wanted.add(wanted)
        if self._next is None:
            self._next = asyncio.create_task(self._look(self._under_way), name="known pages")
        # One caller that is cancelled must not take the answer from the others.
        return (await asyncio.shield(self._next)).get(wanted)

    async def _look(self, before: asyncio.Task[Found] | None) -> Found:
        if before is not None:
            await asyncio.wait((before,))
        wanted, self._wanted = self._wanted, set()
        self._under_way, self._next = self._next, None
        return await self._rows(list(wanted))

    async def _rows(self, wanted: list[Wanted]) -> Found:
        async with self.database.system_tx() as conn:
            rows = await queries.known_pages(
                conn,
                organisation_ids=[organisation_id for organisation_id, _, _ in wanted],
                site_ids=[site_id for _, site_id, _ in wanted],
                hashes=[digest for _, _, digest in wanted],
            )
        return {(row.organisation_id, row.site_id, row.hash): row for row in rows}
