"""Web search: asks a SearXNG when one is set, and else what was indexed here."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Literal, Self

import aiohttp
import msgspec

from trapline.db.pool import Database
from trapline.errors import Unavailable
from trapline.knowledge.filters import Filter
from trapline.knowledge.searching import Query, Searcher
from trapline.model import OrganisationId
from trapline.settings import Settings

Source = Literal["web", "images", "news"]
_CATEGORIES: Final[dict[str, str]] = {"web": "general", "images": "images", "news": "news"}
_LARGEST: Final = 16 * 2**20
_MOST_PAGES: Final = 10
_OWN_INDEX: Final = (
    "Searched the pages that were indexed here. To search the web, set TRAPLINE_SEARXNG_URL to a"
    " SearXNG that has the JSON format on."
)
_AGO: Final = {
    "qdr:h": timedelta(hours=1),
    "qdr:d": timedelta(days=1),
    "qdr:w": timedelta(weeks=1),
    "qdr:m": timedelta(days=31),
    "qdr:y": timedelta(days=366),
}
_TIMES: Final = {"qdr:d": "day", "qdr:w": "week", "qdr:m": "month", "qdr:y": "year"}


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One result, as SearXNG gives it."""

    url: str
    title: str = ""
    content: str | None = None
    publishedDate: str | None = None  # noqa: N815 (its name on the wire)
    img_src: str | None = None
    thumbnail_src: str | None = None
    resolution: str | None = None


class _Found(msgspec.Struct):
    results: list[Hit] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class WebQuery:
    """What to search for."""

    words: str
    source: Source = "web"
    most: int = 10
    language: str | None = None
    time: str | None = None
    """As search engines write it: qdr:d, qdr:w, qdr:m, qdr:y."""
    seconds: float = 60.0
    hosts: tuple[str, ...] = ()
    not_hosts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    def written(self) -> str:
        """The words with what the rest means to a search engine."""
        parts = [self.words, *(f"filetype:{name}" for name in self.types)]
        if self.hosts:
            parts.append("(" + " OR ".join(f"site:{name}" for name in self.hosts) + ")")
        return " ".join([*parts, *(f"-site:{name}" for name in self.not_hosts)])


@dataclass(slots=True)
class Searching:
    """One client of the SearXNG, for a whole process; `searcher` finds what was indexed."""

    settings: Settings
    database: Database
    searcher: Searcher
    _session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
        await self.searcher.aclose()

    @property
    def warning(self) -> str | None:
        """What whoever searches the web should know."""
        return _OWN_INDEX if self.settings.searxng_url is None else None

    async def search(self, organisation_id: OrganisationId, query: WebQuery) -> list[Hit]:
        """Return at most so many results, each URL once; TimeoutError when that takes too long."""
        if self.settings.searxng_url is None:
            return await self._indexed(organisation_id, query)
        hits: dict[str, Hit] = {}
        for number in range(1, _MOST_PAGES + 1):
            found = await self._page(query, number)
            before = len(hits)
            for hit in found:
                hits.setdefault(hit.url, hit)
            if len(hits) == before or len(hits) >= query.most:
                break
        return list(hits.values())[: query.most]

    async def _indexed(self, organisation_id: OrganisationId, query: WebQuery) -> list[Hit]:
        """Pages that were crawled and indexed. Pictures are not."""
        if query.source != "web":
            return []
        ago = _AGO.get(query.time or "")
        wanted = Filter(
            kinds=("site", "url"),
            hosts=query.hosts,
            not_hosts=query.not_hosts,
            types=query.types,
            since=None if ago is None else datetime.now(UTC) - ago,
        )
        asked = Query(words=query.words, wanted=wanted, most=query.most)
        async with self.database.tenant_tx(organisation_id) as conn:
            found = await self.searcher.search(conn, organisation_id, asked)
        return [
            Hit(url=one.uri, title=one.title or "", content=one.snippet.text) for one in found.items
        ]

    async def _page(self, query: WebQuery, number: int) -> list[Hit]:
        parameters: dict[str, Any] = {
            "q": query.written(),
            "format": "json",
            "categories": _CATEGORIES[query.source],
            "pageno": number,
        }
        if query.language:
            parameters["language"] = query.language
        if query.time in _TIMES:
            parameters["time_range"] = _TIMES[query.time]
        if self._session is None:
            self._session = aiohttp.ClientSession()
        url = f"{(self.settings.searxng_url or '').rstrip('/')}/search"
        timeout = aiohttp.ClientTimeout(total=query.seconds)
        try:
            async with self._session.get(url, params=parameters, timeout=timeout) as answer:
                body = await answer.content.read(_LARGEST)
                if answer.status != 200:  # noqa: PLR2004 (HTTP)
                    raise Unavailable(f"SearXNG answered {answer.status}.")
                return msgspec.json.decode(body, type=_Found).results
        except aiohttp.ClientError as error:
            raise Unavailable(f"SearXNG cannot be reached: {error}") from None
        except msgspec.MsgspecError:
            raise Unavailable("SearXNG's answer cannot be read: is its JSON format on?") from None
