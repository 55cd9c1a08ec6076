"""`/api/webhooks/firecrawl`: what a Firecrawl elsewhere tells of its crawls.

The body is signed as Firecrawl does: `X-Firecrawl-Signature: sha256=<hex of HMAC-SHA256(secret,
body)>`. It is answered with 2xx only once it is stored; what is sent again is stored once.
"""

import asyncio
import hashlib
import hmac
from typing import Annotated, Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from trapline.api.dependencies import notify_ready
from trapline.api.problem_details import Problem
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import (
    DatabaseUnavailable,
    InvalidInput,
    NotFound,
    TooLarge,
    Unauthorised,
)
from trapline.model import OrganisationId
from trapline.pipeline.ingest.firecrawl_inbox import FirecrawlInbox, Message, read_document
from trapline.settings import Settings

router = APIRouter(prefix="/api/webhooks", tags=["webhooks"])

_LARGEST: Final = 20 * 2**20
_MOST_PAGES: Final = 1000
# Firecrawl waits ten seconds for an answer: it must hear in time that it has to send again.
_PATIENCE: Final = 6.0
_SIGNATURE: Final = "x-firecrawl-signature"
_WRONG: Final = "The signature is missing or wrong."


class Hook(msgspec.Struct, rename="camel"):
    """A webhook's body; what it does not know of it, it does not read."""

    type: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
    success: bool = True
    webhook_id: str | None = None
    data: Any = None
    error: str | None = None
    metadata: dict[str, Any] | None = None


class StoredHook(BaseModel):
    """What became of it."""

    job_id: UUID | None
    repeated: Annotated[bool, Field(description="It was there already.")]


@router.post(
    "/firecrawl",
    responses={404: {"model": Problem}, 413: {"model": Problem}, 503: {"model": Problem}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)
async def receive_hook(
    request: Request,
    organisation: Annotated[
        str, Query(max_length=200, description="Whose crawl it is: id, name or foreign id.")
    ] = tenancy.DEFAULT_ORGANISATION,
) -> StoredHook:
    """Store what Firecrawl tells of a crawl; its pages become searchable."""
    body = await _body(request)
    _check_signature(request, body)
    hook = _read(body)
    try:
        async with asyncio.timeout(_PATIENCE):
            whose = await _organisation(request.app.state.database, organisation)
            inbox: FirecrawlInbox = request.app.state.inbox
            message = await inbox.receive(_message(whose, hook, body))
    except TimeoutError:
        raise DatabaseUnavailable("It could not be stored; please send it again.") from None
    notify_ready(request)
    return StoredHook(job_id=message.job_id, repeated=message.repeated)


async def _body(request: Request) -> bytes:
    """Read the body up to its bound, whatever its length claims to be."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST:
            raise TooLarge(f"A webhook has at most {_LARGEST:,} bytes.")
    return bytes(body)


def _check_signature(request: Request, body: bytes) -> None:
    settings: Settings = request.app.state.settings
    if settings.firecrawl.webhook_secret is None:
        raise NotFound("Set FIRECRAWL_WEBHOOK_SECRET to take in Firecrawl's webhooks.")
    secret = settings.firecrawl.webhook_secret.get_secret_value().encode()
    expected = "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()
    signature = request.headers.get(_SIGNATURE, "")
    if not hmac.compare_digest(signature.encode(), expected.encode()):
        raise Unauthorised(_WRONG)


async def _organisation(database: Database, reference: str) -> OrganisationId:
    async with database.system_tx() as conn:
        return (await tenancy.find_organisation(conn, reference.replace("\x00", ""))).id


def _read(body: bytes) -> Hook:
    try:
        return msgspec.json.decode(body, type=Hook)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The webhook cannot be read: {error}") from None


def _message(whose: OrganisationId, hook: Hook, body: bytes) -> Message:
    data = hook.data if isinstance(hook.data, list) else [hook.data]
    if len(data) > _MOST_PAGES:
        raise TooLarge(f"A webhook has at most {_MOST_PAGES} pages.")
    error = None if hook.success else _clean(hook.error or "It said that it failed.")
    pages = [page for one in data if (page := read_document(one, error)) is not None]
    return Message(
        whose,
        _id(hook, body),
        _clean(hook.type),
        _clean(hook.id),
        pages,
        error if hook.error is None else _clean(hook.error),
        hook.metadata or {},
    )


def _id(hook: Hook, body: bytes) -> UUID:
    """What tells a repeated webhook: its own id, or its very bytes where it has none."""
    try:
        return UUID(hook.webhook_id or "")
    except ValueError:
        named = f"{hook.webhook_id} " if hook.webhook_id else hashlib.sha256(body).hexdigest()
        return uuid5(NAMESPACE_OID, f"firecrawl {hook.id} {named}")


def _clean(text: str) -> str:
    return text.replace("\x00", "")[:2000]
