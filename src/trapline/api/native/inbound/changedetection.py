"""`/api/webhooks/changedetection`: what changedetection.io tells of pages that it watches.

The body is signed: `X-Trapline-Signature: sha256=<hex of HMAC-SHA256(secret, body)>`; the names that
other bridges use are read too. Every organisation has a secret of its own, which it reads at the
same path and which signs for no other. It is answered with 2xx only once the report is stored.
"""

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trapline.api.principal import Writer
from trapline.api.problem_details import Problem
from trapline.db import tenancy
from trapline.db.pool import Database
from trapline.errors import InvalidInput, NotFound, TooLarge, Unauthorised
from trapline.model import OrganisationId
from trapline.pipeline.sites import changedetection_reports
from trapline.settings import Settings
from trapline.store.changes import ChangeReport

router = APIRouter(prefix="/api/webhooks", tags=["webhooks"])

_LARGEST = 2**20
_SIGNATURES = ("x-trapline-signature", "x-signature", "x-hub-signature-256")
_LONGEST_SKEW = timedelta(days=1)
_WRONG = "The report's signature is missing or wrong."


class WatchReport(BaseModel):
    """What changed. Unknown fields are kept as metadata."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "example": {
                "watch_id": "5b2f6d0e-0f67-4c83-8f0e-4a1d2c3b4a5f",
                "watch_url": "https://example.com/pricing",
                "watch_title": "Pricing",
                "detected_at": "2026-11-15T10:00:00Z",
                "diff_url": "https://watch.example.com/diff/5b2f6d0e",
                "snapshot": "Plans start at 12 euros.",
            }
        },
    )

    watch_id: Annotated[str, Field(min_length=1, max_length=255)]
    watch_url: Annotated[str, Field(min_length=1, max_length=16_000)]
    detected_at: datetime | None = None
    diff_summary: Annotated[str | None, Field(max_length=200_000)] = None
    snapshot_url: Annotated[str | None, Field(max_length=16_000)] = None


class StoredReport(BaseModel):
    """What became of a report."""

    change_id: int
    rescrape_job_id: UUID
    rescrape_status: Annotated[str, Field(examples=["queued"])]
    repeated: Annotated[bool, Field(description="It was there already, and nothing was started.")]


@router.post(
    "/changedetection",
    status_code=202,
    responses={404: {"model": Problem}, 413: {"model": Problem}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": WatchReport.model_json_schema()}},
        }
    },
)
async def receive_report(
    request: Request,
    organisation: Annotated[
        str, Query(max_length=200, description="Whose report it is: id, name or foreign id.")
    ] = tenancy.DEFAULT_ORGANISATION,
) -> StoredReport:
    """Store a change that changedetection.io saw, and look at the page again."""
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    body = await _body(request)
    _master(settings)
    whose = await _organisation(database, organisation)
    _check_signature(settings, whose, request, body)
    report = _read(body)
    async with database.tenant_tx(whose) as conn:
        received = await changedetection_reports.receive(conn, whose, report)
    return StoredReport(
        change_id=received.change_id,
        rescrape_job_id=received.rescrape_job_id,
        rescrape_status=received.rescrape_status,
        repeated=received.repeated,
    )


class WatchSecret(BaseModel):
    """What the organisation's reports are signed with."""

    organisation_id: UUID
    secret: str


@router.get("/changedetection", responses={404: {"model": Problem}})
async def show_secret(request: Request, principal: Writer) -> WatchSecret:
    """Show the secret that signs reports for the caller's organisation, and for no other."""
    secret = changedetection_reports.signing_secret(
        _master(request.app.state.settings), principal.organisation_id
    )
    return WatchSecret(organisation_id=principal.organisation_id, secret=secret)


async def _organisation(database: Database, reference: str) -> OrganisationId:
    """Find whose report it is; who cannot sign does not learn which organisations there are."""
    try:
        async with database.system_tx() as conn:
            return (await tenancy.find_organisation(conn, reference.replace("\x00", ""))).id
    except NotFound:
        raise Unauthorised(_WRONG) from None


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST:
            raise TooLarge(f"A report has at most {_LARGEST} bytes.")
    return body


def _master(settings: Settings) -> str:
    if settings.server.changedetection_secret is None:
        raise NotFound("Set TRAPLINE_CHANGEDETECTION_SECRET to receive reports.")
    return settings.server.changedetection_secret.get_secret_value()


def _check_signature(
    settings: Settings, whose: OrganisationId, request: Request, body: bytes
) -> None:
    secret = changedetection_reports.signing_secret(_master(settings), whose)
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    signature = next((request.headers[name] for name in _SIGNATURES if name in request.headers), "")
    if not hmac.compare_digest(
        signature.removeprefix("sha256=").lower().encode(), expected.encode()
    ):
        raise Unauthorised(_WRONG)


def _read(body: bytes) -> ChangeReport:
    try:
        raw: Any = msgspec.json.decode(body)
        report = WatchReport.model_validate(raw)
    except (msgspec.DecodeError, ValidationError) as error:
        raise InvalidInput(f"The report cannot be read: {error}") from None
    now, extra = datetime.now(UTC), report.model_extra or {}
    return ChangeReport(
        watch_id=_clean(report.watch_id),
        watch_url=_clean(report.watch_url),
        detected_at=_moment(report.detected_at, now),
        digest=changedetection_reports.report_digest(body),
        diff_summary=_text(report.diff_summary, extra, "diff", "triggered_text"),
        snapshot_url=_text(report.snapshot_url, extra, "diff_url", "preview_url"),
        metadata=msgspec.json.decode(msgspec.json.encode(extra).replace(b"\\u0000", b"")),
    )


def _moment(moment: datetime | None, now: datetime) -> datetime:
    """Believe a watcher's clock if it is about right; else the report was made when it came."""
    if moment is None:
        return now
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware if abs(now - aware) < _LONGEST_SKEW else now


def _text(value: str | None, extra: dict[str, Any], *others: str) -> str | None:
    """Take a field by our name, or by one that changedetection.io gives it."""
    text = value or next((extra[name] for name in others if isinstance(extra.get(name), str)), None)
    return None if text is None else _clean(text)


def _clean(text: str) -> str:
    return text.replace("\x00", "")
