"""`/upload/documents` and `/upload/url`: files and addresses on their way into knowledge sources."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from trapline.api import multipart
from trapline.api.access import Writer
from trapline.api.engine import CurrentEngine, Engine, ring
from trapline.api.native.applications import interval_of
from trapline.api.problems import Problem, problem
from trapline.db.pool import Database
from trapline.db.tenancy import Principal
from trapline.errors import InvalidInput
from trapline.knowledge import applications
from trapline.knowledge.config import IngestConfig, read_config
from trapline.knowledge.embedding.embedders import default_config
from trapline.knowledge.sources import Provider
from trapline.model import JobId, MemberId
from trapline.pipeline import remote_crawls, source_pages, uploads
from trapline.pipeline.source_pages import CRAWL_DEPTH, CRAWL_LIMIT, Errand, Wanted
from trapline.pipeline.uploads import Collecting, Owner, Registered
from trapline.queue import jobs
from trapline.queue.events import ENDINGS
from trapline.settings import Settings

router = APIRouter(prefix="/upload", tags=["knowledge"])

_MOST_FIELD_BYTES: Final = 64 * 1024
_BREATH: Final = b": nothing new\n\n"


class _Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class TakenFile(_Camel):
    """A file that was taken."""

    name: str
    knowledge_source_id: UUID
    recognised: Annotated[
        bool, Field(description="It was there already, so nothing is done for it.")
    ]


class RefusedFile(_Camel):
    """A file that was not taken."""

    name: str
    error: str


class Uploaded(_Camel):
    """What became of an upload."""

    job_id: Annotated[UUID | None, Field(description="Null if all files were there already.")]
    job_count: Annotated[int, Field(description="Files that are to be processed.")]
    knowledge_source_ids: list[UUID]
    files: list[TakenFile]
    errors: list[RefusedFile]


class UploadFields(_Camel):
    """What an upload may say beside its files."""

    model_config = ConfigDict(extra="ignore")

    application_id: Annotated[str | None, Field(max_length=300)] = None
    user_id: UUID | None = None
    embedding_config: dict[str, Any] = {}


@router.post(
    "/documents",
    status_code=202,
    response_model=Uploaded,
    responses={413: {"model": Problem}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "properties": {
                            "files": {
                                "type": "array",
                                "items": {"type": "string", "format": "binary"},
                            },
                            "applicationId": {"type": "string"},
                            "userId": {"type": "string", "format": "uuid"},
                            "embeddingConfig": {"type": "string", "description": "JSON."},
                        },
                    }
                }
            },
        }
    },
)
async def upload_documents(request: Request, who: Writer) -> Response:
    """Take in files: each becomes a knowledge source, and all together one job.

    What is wrong with a file is said of that file. If none can be taken, the answer is 400.
    """
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    collecting = Collecting(database, request.app.state.blobs, settings)
    try:
        fields = await _collect(request, collecting)
        await collecting.flush()
    finally:
        collecting.close()
    if not collecting.files:
        return _nothing(collecting)
    async with database.tenant_tx(who.organisation_id) as conn:
        owner = await _owner(conn, who, fields, settings)
        registered = await uploads.register(conn, owner, collecting.files, settings)
    ring(request)
    body = _uploaded(registered, collecting)
    return JSONResponse(body.model_dump(mode="json", by_alias=True), status_code=202)


async def _collect(request: Request, collecting: Collecting) -> UploadFields:
    """Take in every file of a form, and its fields."""
    fields: dict[str, Any] = {}
    async for part in multipart.parts(request):
        if part.filename is not None:
            await collecting.add(part.filename, part.pieces(), content_type=part.content_type)
        elif part.name == "embeddingConfig":
            fields[part.name] = _json(await part.text(_MOST_FIELD_BYTES))
        else:
            fields[part.name] = (await part.text(_MOST_FIELD_BYTES)).replace("\x00", "") or None
    try:
        return UploadFields.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        raise InvalidInput("embeddingConfig is not JSON.") from None


def _nothing(collecting: Collecting) -> Response:
    if not collecting.refused:
        return problem(400, "There is no file in the form.")
    first = collecting.refused[0]
    return problem(
        400,
        f"None of the files can be taken. {first.name}: {first.error}",
        errors=[{"name": one.name, "error": one.error} for one in collecting.refused],
    )


async def _owner(conn: Any, who: Principal, fields: UploadFields, settings: Settings) -> Owner:
    application_id = None
    if fields.application_id is not None:
        found = await applications.find(conn, who.organisation_id, fields.application_id)
        application_id = found.id
    member = None if fields.user_id is None else MemberId(fields.user_id)
    config = _config(fields.embedding_config, settings)
    return Owner(who.organisation_id, config, application_id, member)


def _config(given: dict[str, Any], settings: Settings) -> IngestConfig:
    return read_config(given, default_config(settings))


def _uploaded(registered: Registered, collecting: Collecting) -> Uploaded:
    return Uploaded(
        job_id=registered.job_id,
        job_count=registered.queued,
        knowledge_source_ids=list(dict.fromkeys(one.source_id for one in registered.taken)),
        files=[
            TakenFile(
                name=one.file.name,
                knowledge_source_id=one.source_id,
                recognised=one.recognised,
            )
            for one in registered.taken
        ],
        errors=[RefusedFile(name=one.name, error=one.error) for one in collecting.refused],
    )


class UrlQuery(_Camel):
    """A page or a site to be fetched."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(min_length=1, max_length=16_000, examples=["https://example.com/"])]
    crawl_links: Annotated[bool, Field(description="Fetch the whole site, in the background.")] = (
        False
    )
    limit: Annotated[int, Field(ge=1, le=100_000, description="Most pages of a site.")] = (
        CRAWL_LIMIT
    )
    max_depth: Annotated[int, Field(ge=0, le=100)] = CRAWL_DEPTH
    application_id: Annotated[str | None, Field(max_length=300, description="Id or name.")] = None
    user_id: UUID | None = None
    rescrape_seconds: Annotated[float | None, Field(ge=60, le=366 * 86400)] = None
    provider: Annotated[
        Provider, Field(description="Who fetches it: we, or the Firecrawl of FIRECRAWL_API_URL.")
    ] = "trapline"


class UrlWish(UrlQuery):
    """The same, with all that a body can say."""

    embedding_config: dict[str, Any] = {}


class UrlStarted(_Camel):
    """What a site is fetched into, and by which job."""

    job_id: UUID
    knowledge_source_id: UUID


_STREAMED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/event-stream": {}}, "description": "A single page, as it goes."},
    202: {"model": UrlStarted, "description": "A site, in the background."},
}


@router.post("/url", responses=_STREAMED, response_class=Response)
async def upload_url(
    request: Request, who: Writer, parts: CurrentEngine, wish: UrlWish
) -> Response:
    """Fetch a page into a knowledge source and tell how it goes; or a whole site, in the background."""
    return await _fetch(request, who, parts, wish)


@router.get("/url", responses=_STREAMED, response_class=Response)
async def upload_url_get(
    request: Request,
    who: Writer,
    parts: CurrentEngine,
    wish: Annotated[UrlQuery, Query()],
) -> Response:
    """Do the same for clients that can only ask, such as a browser's EventSource."""
    return await _fetch(request, who, parts, UrlWish(**wish.model_dump()))


async def _fetch(request: Request, who: Principal, parts: Engine, wish: UrlWish) -> Response:
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    fields = UploadFields(application_id=wish.application_id, user_id=wish.user_id)
    if wish.provider == "firecrawl":
        remote_crawls.require(settings)
    async with database.tenant_tx(who.organisation_id) as conn:
        owner = await _owner(conn, who, fields, settings)
        source, job_id = await source_pages.fetch(
            conn,
            Wanted(
                organisation_id=who.organisation_id,
                url=wish.url.replace("\x00", ""),
                config=_config(wish.embedding_config, settings),
                crawl_links=wish.crawl_links,
                limit=wish.limit,
                max_depth=wish.max_depth,
                application_id=owner.application_id,
                member_id=owner.member_id,
                rescrape_every=interval_of(wish.rescrape_seconds),
                provider=wish.provider,
            ),
            Errand(jobs.times_kept(settings)[0]),
        )
    ring(request)
    started = UrlStarted(job_id=job_id, knowledge_source_id=source.id)
    if wish.crawl_links:
        return JSONResponse(started.model_dump(mode="json", by_alias=True), status_code=202)
    return StreamingResponse(
        _told(parts, who, job_id, started),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _told(
    parts: Engine, who: Principal, job_id: JobId, started: UrlStarted
) -> AsyncIterator[bytes]:
    """Tell how a page gets on. Whoever goes away misses the telling only: the job goes on."""
    yield _event("started", started.model_dump(mode="json", by_alias=True))
    indexed, why = False, "There is no text in it."
    async for found in parts.feeds.follow(who.organisation_id, job_id):
        for one in found:
            indexed = indexed or (one.type == "item" and one.data.get("error") is None)
            why = one.data.get("error") or why
            if one.type in ENDINGS and not indexed:
                yield _event("failed", one.data | {"error": why})
                return
            yield _event(_STEPS.get(one.type, one.type), one.data)
            if one.type in ENDINGS:
                return
        if not found:
            yield _BREATH


# What the steps of one page are called to whoever waits for it.
_STEPS: Final = {
    "job.started": "processing",
    "page": "fetched",
    "item": "indexed",
    "job.completed": "completed",
    "job.failed": "failed",
    "job.cancelled": "cancelled",
}


def _event(name: str, data: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(data))
