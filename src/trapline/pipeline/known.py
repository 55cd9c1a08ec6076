"""What is known of the pages that are about to be visited, looked up for many of them at once.

Whoever asks while a look is under way goes into the next one: under load that is one statement for
all pages that were claimed together, and a page alone still waits for nobody.
"""

import asyncio
from dataclasses import dataclass, field

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.frontier.url import origin_of, url_hash
from trapline.model import OrganisationId, SiteId
from trapline.pipeline.sql import known as queries
from trapline.pipeline.sql.known import KnownPagesRow

Wanted = tuple[OrganisationId, SiteId | None, str]
Found = dict[Wanted, KnownPagesRow]


@dataclass(slots=True)
class KnownPages:
    """Finds what earlier visits left of a page."""

    database: Database
    _wanted: dict[Wanted, None] = field(default_factory=dict)
    _next: asyncio.Task[Found] | None = None
    _under_way: asyncio.Task[Found] | None = None

    async def find(
        self, organisation_id: OrganisationId, site_id: SiteId | None, url: str
    ) -> KnownPagesRow:
        """Return what is known of a URL in a site, or in the implicit one of its origin.

        One that was never visited has no `last_visit_at`; a site that is not there yet, no id.
        """
        wanted = (organisation_id, site_id, url)
        self._wanted[wanted] = None
        if self._next is None:
            self._next = asyncio.create_task(self._look(self._under_way), name="known pages")
        # One caller that is cancelled must not take the answer from the others.
        return (await asyncio.shield(self._next))[wanted]

    async def _look(self, before: asyncio.Task[Found] | None) -> Found:
        if before is not None:
            await asyncio.wait((before,))
        wanted, self._wanted = list(self._wanted), {}
        self._under_way, self._next = self._next, None

        async def look(conn: Connection) -> list[KnownPagesRow]:
            return await queries.known_pages(
                conn,
                organisation_ids=[organisation_id for organisation_id, _, _ in wanted],
                site_ids=[site_id for _, site_id, _ in wanted],
                origins=[origin_of(url) for _, _, url in wanted],
                hashes=[url_hash(url) for _, _, url in wanted],
            )

        return {wanted[row.position - 1]: row for row in await self.database.statement(look)}
