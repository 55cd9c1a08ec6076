"""Web search: by SearXNG where one is configured, else in the local index."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Literal, Self

import aiohttp
import msgspec

from trapline.db.pool import Database
from trapline.errors import Unavailable
from trapline.knowledge.filters import SearchFilter
from trapline.knowledge.search import Searcher, SearchQuery
from trapline.model import OrganisationId
from trapline.settings import WebSearchSettings

SearchSource = Literal["web", "images", "news"]
_CATEGORIES: Final[dict[str, str]] = {"web": "general", "images": "images", "news": "news"}
_MAX_BYTES: Final = 16 * 2**20
_MAX_PAGES: Final = 10
_OWN_INDEX: Final = (
    "Searched the local index. To search the web, set TRAPLINE_SEARXNG_URL to a SearXNG with its JSON"
    " format enabled."
)
_TIME_SPANS: Final = {
    "qdr:h": timedelta(hours=1),
    "qdr:d": timedelta(days=1),
    "qdr:w": timedelta(weeks=1),
    "qdr:m": timedelta(days=31),
    "qdr:y": timedelta(days=366),
}
_TIME_RANGES: Final = {"qdr:d": "day", "qdr:w": "week", "qdr:m": "month", "qdr:y": "year"}


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One result, in SearXNG's format."""

    url: str
    title: str = ""
    content: str | None = None
    publishedDate: str | None = None  # noqa: N815 (its name on the wire)
    img_src: str | None = None
    thumbnail_src: str | None = None
    resolution: str | None = None


class _SearxngResponse(msgspec.Struct):
    results: list[Hit] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class WebQuery:
    """A web search."""

    words: str
    source: SearchSource = "web"
    most: int = 10
    language: str | None = None
    time: str | None = None
    """As search engines write it: qdr:d, qdr:w, qdr:m, qdr:y."""
    seconds: float = 60.0
    hosts: tuple[str, ...] = ()
    not_hosts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    def search_string(self) -> str:
        """Return the words with the operators of search engines."""
        parts = [self.words, *(f"filetype:{name}" for name in self.types)]
        if self.hosts:
            parts.append("(" + " OR ".join(f"site:{name}" for name in self.hosts) + ")")
        return " ".join([*parts, *(f"-site:{name}" for name in self.not_hosts)])


@dataclass(slots=True)
class WebSearch:
    """One client per process; `searcher` searches the local index."""

    settings: WebSearchSettings
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
        """A note for callers that only the local index is searched."""
        return _OWN_INDEX if self.settings.searxng_url is None else None

    async def search(self, organisation_id: OrganisationId, query: WebQuery) -> list[Hit]:
        """Return at most `query.most` results, each URL once; TimeoutError after `query.seconds`."""
        if self.settings.searxng_url is None:
            return await self._search_index(organisation_id, query)
        hits: dict[str, Hit] = {}
        for number in range(1, _MAX_PAGES + 1):
            before = len(hits)
            for hit in await self._fetch_page(query, number):
                hits.setdefault(hit.url, hit)
            if len(hits) == before or len(hits) >= query.most:
                break
        return list(hits.values())[: query.most]

    async def _search_index(self, organisation_id: OrganisationId, query: WebQuery) -> list[Hit]:
        """Search the pages that were crawled and indexed; images are not."""
        if query.source != "web":
            return []
        ago = _TIME_SPANS.get(query.time or "")
        wanted = SearchFilter(
            kinds=("site", "url"),
            hosts=query.hosts,
            not_hosts=query.not_hosts,
            types=query.types,
            since=None if ago is None else datetime.now(UTC) - ago,
        )
        asked = SearchQuery(words=query.words, filters=wanted, most=query.most)
        async with self.database.tenant_tx(organisation_id) as conn:
            found = await self.searcher.search(conn, organisation_id, asked)
        return [
            Hit(url=one.uri, title=one.title or "", content=one.snippet.text) for one in found.items
        ]

    async def _fetch_page(self, query: WebQuery, number: int) -> list[Hit]:
        parameters: dict[str, Any] = {
            "q": query.search_string(),
            "format": "json",
            "categories": _CATEGORIES[query.source],
            "pageno": number,
        }
        if query.language:
            parameters["language"] = query.language
        if query.time in _TIME_RANGES:
            parameters["time_range"] = _TIME_RANGES[query.time]
        if self._session is None:
            self._session = aiohttp.ClientSession()
        url = f"{(self.settings.searxng_url or '').rstrip('/')}/search"
        timeout = aiohttp.ClientTimeout(total=query.seconds)
        try:
            async with self._session.get(url, params=parameters, timeout=timeout) as response:
                body = await response.content.read(_MAX_BYTES)
                if response.status != 200:  # noqa: PLR2004 (HTTP)
                    raise Unavailable(f"SearXNG answered {response.status}.")
                return msgspec.json.decode(body, type=_SearxngResponse).results
        except aiohttp.ClientError as error:
            raise Unavailable(f"SearXNG cannot be reached: {error}") from None
        except msgspec.MsgspecError:
            raise Unavailable("SearXNG did not answer with JSON: enable its JSON format.") from None
