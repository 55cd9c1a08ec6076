"""What is known of the pages that are about to be visited, looked up for many of them at once.

Whoever asks while a look is under way goes into the next one: under load that is one statement for
all pages that were claimed together, and a page alone still waits for nobody.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.frontier.url import origin_of, url_hash
from trapline.model import OrganisationId, SiteId
from trapline.pipeline.sql import known as queries
from trapline.pipeline.sql.known import KnownPagesRow

Wanted = tuple[OrganisationId, SiteId | None, str]
Answer: TypeAlias = asyncio.Future[KnownPagesRow]


@dataclass(slots=True)
class KnownPages:
    """Finds what earlier visits left of a page."""

    database: Database
    _wanted: list[tuple[Wanted, Answer]] = field(default_factory=list)
    _looking: asyncio.Task[None] | None = None

    async def find(
        self, organisation_id: OrganisationId, site_id: SiteId | None, url: str
    ) -> KnownPagesRow:
        """Return what is known of a URL in a site, or in the implicit one of its origin.

        One that was never visited has no `last_visit_at`; a site that is not there yet, no id.
        """
        # Of its own: one caller that is cancelled must not take the answer from the others.
        answer: Answer = asyncio.get_running_loop().create_future()
        self._wanted.append(((organisation_id, site_id, url), answer))
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="known pages")
        return await answer

    async def _look(self) -> None:
        while self._wanted:
            asked, self._wanted = self._wanted, []
            try:
                found = await self._find(list({wanted: None for wanted, _ in asked}))
            except Exception as error:  # noqa: BLE001 (it is raised to those who wait)
                for _, answer in asked:
                    if not answer.done():
                        answer.set_exception(error)
            else:
                for wanted, answer in asked:
                    if not answer.done():
                        answer.set_result(found[wanted])

    async def _find(self, wanted: Sequence[Wanted]) -> dict[Wanted, KnownPagesRow]:
        async def look(conn: Connection) -> list[KnownPagesRow]:
            return await queries.known_pages(
                conn,
                organisation_ids=[organisation_id for organisation_id, _, _ in wanted],
                site_ids=[site_id for _, site_id, _ in wanted],
                origins=[origin_of(url) for _, _, url in wanted],
                hashes=[url_hash(url) for _, _, url in wanted],
            )

        return {wanted[row.position - 1]: row for row in await self.database.statement(look)}
