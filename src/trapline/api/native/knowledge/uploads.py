"""`/upload/documents` and `/upload/url`: files and URLs that become knowledge sources."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from trapline.api import multipart
from trapline.api.dependencies import CurrentServices, notify_ready
from trapline.api.native.knowledge.applications import interval_of
from trapline.api.principal import Writer
from trapline.api.problem_details import Problem, problem
from trapline.api.services import Services
from trapline.db.pool import Database
from trapline.db.tenancy import Principal
from trapline.errors import InvalidInput
from trapline.knowledge import applications
from trapline.knowledge.embedding.embedders import default_config
from trapline.knowledge.source_config import IngestConfig, read_config
from trapline.knowledge.sources import Provider
from trapline.model import JobId, MemberId
from trapline.pipeline import owned_references
from trapline.pipeline.ingest import remote_crawls, source_pages, uploads
from trapline.pipeline.ingest.source_pages import (
    CRAWL_DEPTH,
    CRAWL_LIMIT,
    FetchRequest,
    JobParameters,
)
from trapline.pipeline.ingest.uploads import RegisteredUpload, UploadCollector, UploadOwner
from trapline.queue import jobs
from trapline.queue.events import TERMINAL_EVENTS
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
async def upload_documents(request: Request, principal: Writer) -> Response:
    """Take in files: each becomes a knowledge source, and all together one job.

    What is wrong with a file is said of that file. If none can be taken, the answer is 400.
    """
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    collecting = UploadCollector(database, request.app.state.blobs, settings.uploads)
    try:
        fields = await _collect(request, collecting)
        await collecting.flush()
    finally:
        collecting.close()
    if not collecting.files:
        return _nothing(collecting)
    async with database.tenant_tx(principal.organisation_id) as conn:
        owner = await _owner(conn, principal, fields, settings)
        registered = await uploads.register(conn, owner, collecting.files, settings)
    notify_ready(request)
    body = _uploaded(registered, collecting)
    return JSONResponse(body.model_dump(mode="json", by_alias=True), status_code=202)


async def _collect(request: Request, collecting: UploadCollector) -> UploadFields:
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


def _nothing(collecting: UploadCollector) -> Response:
    if not collecting.rejected:
        return problem(400, "There is no file in the form.")
    first = collecting.rejected[0]
    return problem(
        400,
        f"None of the files can be taken. {first.name}: {first.error}",
        errors=[{"name": one.name, "error": one.error} for one in collecting.rejected],
    )


async def _owner(
    conn: Any, principal: Principal, fields: UploadFields, settings: Settings
) -> UploadOwner:
    application_id = None
    if fields.application_id is not None:
        application = await applications.find(
            conn, principal.organisation_id, fields.application_id
        )
        application_id = application.id
    member = None if fields.user_id is None else MemberId(fields.user_id)
    await owned_references.require_member(conn, principal.organisation_id, member)
    config = _config(fields.embedding_config, settings)
    return UploadOwner(principal.organisation_id, config, application_id, member)


def _config(fields: dict[str, Any], settings: Settings) -> IngestConfig:
    return read_config(fields, default_config(settings.embedding))


def _uploaded(registered: RegisteredUpload, collecting: UploadCollector) -> Uploaded:
    return Uploaded(
        job_id=registered.job_id,
        job_count=registered.queued,
        knowledge_source_ids=list(dict.fromkeys(one.source_id for one in registered.files)),
        files=[
            TakenFile(
                name=one.file.name,
                knowledge_source_id=one.source_id,
                recognised=one.recognised,
            )
            for one in registered.files
        ],
        errors=[RefusedFile(name=one.name, error=one.error) for one in collecting.rejected],
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
    request: Request, principal: Writer, services: CurrentServices, body: UrlWish
) -> Response:
    """Fetch a page into a knowledge source and tell how it goes; or a whole site, in the background."""
    return await _fetch(request, principal, services, body)


@router.get("/url", responses=_STREAMED, response_class=Response)
async def upload_url_get(
    request: Request,
    principal: Writer,
    services: CurrentServices,
    body: Annotated[UrlQuery, Query()],
) -> Response:
    """Do the same for clients that can only ask, such as a browser's EventSource."""
    return await _fetch(request, principal, services, UrlWish(**body.model_dump()))


async def _fetch(
    request: Request, principal: Principal, services: Services, body: UrlWish
) -> Response:
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    fields = UploadFields(application_id=body.application_id, user_id=body.user_id)
    if body.provider == "firecrawl":
        remote_crawls.require_settings(settings.firecrawl)
    async with database.tenant_tx(principal.organisation_id) as conn:
        owner = await _owner(conn, principal, fields, settings)
        source, job_id = await source_pages.fetch(
            conn,
            FetchRequest(
                organisation_id=principal.organisation_id,
                url=body.url.replace("\x00", ""),
                config=_config(body.embedding_config, settings),
                crawl_links=body.crawl_links,
                limit=body.limit,
                max_depth=body.max_depth,
                application_id=owner.application_id,
                member_id=owner.member_id,
                rescrape_every=interval_of(body.rescrape_seconds),
                provider=body.provider,
            ),
            JobParameters(jobs.retention_times(settings.retention)[0]),
        )
    notify_ready(request)
    started = UrlStarted(job_id=job_id, knowledge_source_id=source.id)
    if body.crawl_links:
        return JSONResponse(started.model_dump(mode="json", by_alias=True), status_code=202)
    return StreamingResponse(
        _told(services, principal, job_id, started),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _told(
    services: Services, principal: Principal, job_id: JobId, started: UrlStarted
) -> AsyncIterator[bytes]:
    """Tell how a page gets on. Whoever goes away misses the telling only: the job goes on."""
    yield _event("started", started.model_dump(mode="json", by_alias=True))
    indexed, why = False, "There is no text in it."
    async for events in services.feeds.follow(principal.organisation_id, job_id):
        for one in events:
            indexed = indexed or (one.type == "item" and one.data.get("error") is None)
            why = one.data.get("error") or why
            if one.type in TERMINAL_EVENTS and not indexed:
                yield _event("failed", one.data | {"error": why})
                return
            yield _event(_STEPS.get(one.type, one.type), one.data)
            if one.type in TERMINAL_EVENTS:
                return
        if not events:
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
