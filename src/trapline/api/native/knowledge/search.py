"""`/api/search`: keyword and vector search over indexed content, and similar pages."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from starlette.requests import HTTPConnection

from trapline.api import pagination
from trapline.api.principal import Reader, Tenant
from trapline.db.connection import Connection
from trapline.db.keyset import Number
from trapline.errors import InvalidInput
from trapline.knowledge import search as searching
from trapline.knowledge.filters import SearchFilter
from trapline.knowledge.fusion import Method
from trapline.knowledge.results import Granularity, Result
from trapline.knowledge.search import MOST_CHARACTERS, MOST_DEPTH, MOST_RESULTS, Searcher, SimilarTo
from trapline.model import ApplicationId, OrganisationId, PageId, SiteId, SourceId
from trapline.store import sites

router = APIRouter(prefix="/api/search", tags=["search"])

_Words = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
_Name = Annotated[str, Field(min_length=1, max_length=300)]
_Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


async def searcher(connection: HTTPConnection) -> Searcher:
    tool: Searcher = connection.app.state.searcher
    return tool


CurrentSearcher = Annotated[Searcher, Depends(searcher)]


class Narrowing(BaseModel):
    """Which texts are searched. Of several values one must fit."""

    model_config = ConfigDict(extra="forbid")

    site: Annotated[list[_Name], Field(max_length=100, description="Sites, by id or name.")] = []
    source: Annotated[list[UUID], Field(max_length=100)] = []
    application: Annotated[list[UUID], Field(max_length=100)] = []
    kind: Annotated[
        list[Literal["file", "url", "site"]], Field(max_length=3, description="Of the source.")
    ] = []
    language: Annotated[list[_Name], Field(max_length=50, examples=[["en"]])] = []
    type: Annotated[
        list[_Name],
        Field(
            max_length=50,
            description="Media types: whole, the part before the slash with it, or a word of it.",
            examples=[["application/pdf"]],
        ),
    ] = []
    host: Annotated[list[_Name], Field(max_length=100)] = []
    path: Annotated[
        str | None, Field(max_length=2000, description="What the path begins with.")
    ] = None
    since: AwareDatetime | None = None
    until: Annotated[AwareDatetime | None, Field(description="Before this time.")] = None

    async def filter(self, conn: Connection, organisation_id: OrganisationId) -> SearchFilter:
        return SearchFilter(
            sources=tuple(map(SourceId, self.source)),
            sites=tuple(
                [SiteId((await sites.find(conn, organisation_id, one)).id) for one in self.site]
            ),
            applications=tuple(map(ApplicationId, self.application)),
            kinds=tuple(self.kind),
            languages=tuple(self.language),
            types=tuple(self.type),
            hosts=tuple(self.host),
            path=self.path,
            since=self.since,
            until=self.until,
        )


class _Place(msgspec.Struct, array_like=True):
    """What a cursor holds: the depth, and the last result's score and chunk."""

    depth: Annotated[int, msgspec.Meta(ge=1, le=MOST_DEPTH)]
    score: float
    chunk_id: Number


class Manner(Narrowing):
    """How to search and what to show."""

    mode: searching.Mode = "hybrid"
    method: Annotated[
        Method,
        Field(description="How a hybrid search makes one ranking: of scores or (rrf) of ranks."),
    ] = "weighted"
    keyword_weight: Annotated[
        _Weight | None, Field(description="By itself .7 with the light model, .5 with others.")
    ] = None
    vector_weight: Annotated[
        _Weight | None, Field(description="By itself .3 with the light model, .5 with others.")
    ] = None
    query_language: Annotated[
        str | None, Field(max_length=35, description="Of the words; without it all are tried.")
    ] = None
    granularity: Granularity = "page"
    collapse: Annotated[bool, Field(description="Show texts that say the same once.")] = True
    typos: Annotated[
        bool, Field(description="Take words that are nowhere for ones that are written like them.")
    ] = True
    explain: Annotated[bool, Field(description="Tell each leg's rank and score.")] = False
    limit: Annotated[int, Field(ge=1, le=MOST_RESULTS)] = 10
    depth: Annotated[
        int | None,
        Field(ge=1, le=MOST_DEPTH, description="Passages that each leg contributes at most."),
    ] = None
    cursor: Annotated[str | None, Field(max_length=500)] = None

    async def asked(
        self, conn: Connection, organisation_id: OrganisationId, words: str
    ) -> searching.SearchQuery:
        position = pagination.decode(self.cursor, _Place)
        return searching.SearchQuery(
            words=words.replace("\x00", " "),
            mode=self.mode,
            method=self.method,
            keyword_weight=self.keyword_weight,
            vector_weight=self.vector_weight,
            filters=await self.filter(conn, organisation_id),
            language=self.query_language,
            granularity=self.granularity,
            collapse=self.collapse,
            tolerant=self.typos,
            most=self.limit,
            # All pages of results come from legs of the same length, or ranks would shift.
            depth=(self.depth or 0) if position is None else position.depth,
            after=None if position is None else (position.score, position.chunk_id),
        )


class InUrl(Manner):
    """GET /api/search."""

    q: _Words


class InBody(Manner):
    """POST /api/search."""

    query: _Words


class Highlight(BaseModel):
    """A piece of the passage; `marks` are the places in it of words that were looked for."""

    text: str
    marks: list[tuple[int, int]]


class LegReason(BaseModel):
    """Where one way of searching ranked the passage, and by which score."""

    rank: int
    score: float


class Found(BaseModel):
    """A page by its best passage, or a passage."""

    url: str
    title: str | None
    path: str
    language: str
    content_type: str | None
    dated_at: datetime
    source_id: UUID
    source: str
    kind: str
    site_id: UUID | None
    application_id: UUID | None
    page_id: UUID | None
    entry_id: int
    chunk_id: int
    headings: list[str]
    text: str
    start: int
    end: int
    highlight: Highlight
    score: float
    passages: Annotated[int, Field(description="Passages of the page that were found.")]
    duplicates: Annotated[list[str], Field(description="Where the same is said.")]
    explain: dict[str, LegReason] | None = None

    @classmethod
    def of(cls, result: Result, *, explain: bool) -> "Found":
        reasons = {
            name: LegReason(rank=reason.rank, score=reason.score)
            for name, reason in result.reasons.items()
        }
        return cls(
            url=result.uri,
            title=result.title,
            path=result.path,
            language=result.language,
            content_type=result.content_type,
            dated_at=result.dated_at,
            source_id=result.source_id,
            source=result.source_name,
            kind=result.source_kind,
            site_id=result.site_id,
            application_id=result.application_id,
            page_id=result.page_id,
            entry_id=result.entry_id,
            chunk_id=result.chunk_id,
            headings=list(result.headings),
            text=result.words,
            start=result.starts_at,
            end=result.ends_at,
            highlight=Highlight(text=result.snippet.text, marks=list(result.snippet.marks)),
            score=result.score,
            passages=result.passages,
            duplicates=list(result.duplicates),
            explain=reasons if explain else None,
        )


class FoundPage(pagination.Page[Found]):
    """One page of results."""

    corrected: Annotated[
        dict[str, list[str]],
        Field(description="Words that are nowhere, and what they were taken for."),
    ]
    warnings: list[str]
    milliseconds: Annotated[dict[str, float], Field(description="What each step took.")]

    @classmethod
    def of(cls, results: searching.SearchResults, *, explain: bool) -> "FoundPage":
        last = results.items[-1] if results.more and results.items else None
        position = None if last is None else _Place(results.depth, last.score, last.chunk_id)
        return cls(
            items=[Found.of(one, explain=explain) for one in results.items],
            next=None if position is None else pagination.encode(position),
            corrected={word: list(meant) for word, meant in results.corrected.items()},
            warnings=list(results.warnings),
            milliseconds={name: round(took, 3) for name, took in results.milliseconds.items()},
        )


@router.get("")
async def search_by_url(
    conn: Tenant, principal: Reader, tool: CurrentSearcher, body: Annotated[InUrl, Query()]
) -> FoundPage:
    """Search what was indexed."""
    query = await body.asked(conn, principal.organisation_id, body.q)
    results = await tool.search(conn, principal.organisation_id, query)
    return FoundPage.of(results, explain=body.explain)


@router.post("")
async def search(conn: Tenant, principal: Reader, tool: CurrentSearcher, body: InBody) -> FoundPage:
    """Search what was indexed; the same as by GET, for long queries."""
    query = await body.asked(conn, principal.organisation_id, body.query)
    results = await tool.search(conn, principal.organisation_id, query)
    return FoundPage.of(results, explain=body.explain)


class LikeWhat(Narrowing):
    """GET /api/search/similar: like a page, a text or what has a URL; exactly one of them."""

    page_id: UUID | None = None
    entry_id: Annotated[int | None, Field(ge=1, le=2**63 - 1)] = None
    url: Annotated[str | None, Field(min_length=1, max_length=16_000)] = None
    limit: Annotated[int, Field(ge=1, le=MOST_RESULTS)] = 10
    explain: bool = False

    def likeness(self) -> SimilarTo:
        references = [one for one in (self.page_id, self.entry_id, self.url) if one is not None]
        if len(references) != 1:
            raise InvalidInput("Say what to be similar to: page_id, entry_id or url.")
        page_id = None if self.page_id is None else PageId(self.page_id)
        return SimilarTo(page_id, self.url, self.entry_id)


@router.get("/similar")
async def similar(
    conn: Tenant, principal: Reader, tool: CurrentSearcher, body: Annotated[LikeWhat, Query()]
) -> FoundPage:
    """Find pages that are about the same as one."""
    results = await tool.similar(
        conn,
        principal.organisation_id,
        body.likeness(),
        filters=await body.filter(conn, principal.organisation_id),
        most=body.limit,
    )
    return FoundPage.of(results, explain=body.explain)
