"""POST /v2/parse: an uploaded file, extracted as a page would be."""

from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Form, Response, UploadFile
from msgspec import structs
from pydantic import Field, ValidationError

from trapline.api.dependencies import CurrentServices
from trapline.api.firecrawl.errors import CUSTOM, FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.redaction_option import find_names, names_warning, require_names
from trapline.api.firecrawl.requests.scrape_options import ScrapeOptionsBody
from trapline.api.firecrawl.response_models import DocumentAnswer, Done, responses
from trapline.api.principal import Reader, Writer
from trapline.deliver import firecrawl_document
from trapline.deliver.firecrawl_document import (
    VisitFacts,
    add_warnings,
    document,
    redact_document,
)
from trapline.errors import VisitFailed
from trapline.extract.files.kinds import Kind, extensions_and_types, kind_of
from trapline.pipeline.scrape.parse_upload import parse_file

MOST_BYTES: Final = 50 * 2**20
_MEDIA: Final = ("image/", "audio/", "video/")
_CODE: Final = "PARSE_UNSUPPORTED_OPTIONS"
_NOT_FOR_FILES: Final = frozenset(
    {"changeTracking", "screenshot", "branding", "audio", "video", "rawBase64"}
)


class ParseRoute(FirecrawlRoute):
    """A route for file uploads: its body may be larger than JSON's."""

    most_bytes = MOST_BYTES + 2**20


router = APIRouter(route_class=ParseRoute, tags=["firecrawl"], responses=responses())


class ParseOptions(ScrapeOptionsBody):
    """The part `options` of an upload."""

    zero_data_retention: bool = True
    origin: Annotated[str | None, Field(max_length=500)] = None
    integration: Annotated[str | None, Field(max_length=500)] = None


@router.post("/v2/parse", response_model=DocumentAnswer)
async def parse(
    principal: Writer,
    services: CurrentServices,
    file: UploadFile,
    options: Annotated[str, Form(max_length=2**20)] = "{}",
) -> Response:
    """Extract a file; nothing is stored."""
    del principal
    body = _options(options)
    scrape = body.scrape_options(zero_data_retention=True)
    services.model.require(body.llm_requests(), "The format json or question")
    require_names(services.model, body)
    content = await file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Refusal(413, f"The file is larger than {MOST_BYTES:,} bytes.")
    name = file.filename or "file"
    _require_document(content, file.content_type, name)
    try:
        page = await parse_file(content, file.content_type, name, scrape)
    except VisitFailed as error:
        outcome = error.outcome
        raise Refusal(outcome.http_status, error.message, outcome.firecrawl_code) from None
    facts = VisitFacts(
        url=name,
        source_url=name,
        status=200,
        content_type=page.content_type,
        max_pages=body.max_pages,
    )
    redaction, _ = await find_names(services.model, body, page)
    if redaction is not None:
        page = structs.replace(page, markdown=redaction.text(page.markdown))
    out = document(page, body.names, facts)
    answers = await services.model.answer(body.llm_requests(), page.markdown)
    firecrawl_document.add_llm_results(out, answers.values, answers.warnings)
    add_warnings(out, [*body.warnings(), *names_warning(services.model, body)])
    data = out if redaction is None else redact_document(out, redaction.value)
    return answer(200, success=True, data=data)


def _require_document(content: bytes, content_type: str | None, name: str) -> None:
    """Refuse a file without text, by its bytes and by its declared type."""
    is_media = (content_type or "").lower().startswith(_MEDIA)
    if is_media or kind_of(content, content_type, name) in (Kind.IMAGE, Kind.UNKNOWN):
        raise Refusal(
            400,
            f"{name}: this type of file has no text to read; GET /v2/parse/formats lists those that do.",
            "UNSUPPORTED_FILE_TYPE",
        )


def _options(text: str) -> ParseOptions:
    """Read the options; refuse those that make no sense for a file."""
    try:
        fields = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        raise Refusal(400, "The part options is not JSON.", "BAD_REQUEST_INVALID_JSON") from None
    try:
        body = ParseOptions.model_validate(fields)
    except ValidationError as error:
        raise Refusal(400, _first(error), "BAD_REQUEST", _details(error)) from None
    wrong = body.names & _NOT_FOR_FILES
    wrong |= {
        name
        for name, is_set in (
            ("actions", bool(body.actions)),
            ("waitFor", bool(body.wait_for)),
            ("browser", body.browser == "always"),
            ("location", body.location is not None),
            ("mobile", body.mobile),
            ("proxy", body.proxy not in {"auto", "basic"}),
        )
        if is_set
    }
    if wrong:
        raise Refusal(400, f"Not for files: {', '.join(sorted(wrong))}.", _CODE)
    return body


def _first(error: ValidationError) -> str:
    custom = [issue["msg"] for issue in error.errors() if issue["type"] == CUSTOM]
    return custom[0] if custom else "Bad Request"


def _details(error: ValidationError) -> list[dict[str, Any]]:
    return [
        {"code": issue["type"], "path": list(issue["loc"]), "message": issue["msg"]}
        for issue in error.errors(include_context=False, include_input=False, include_url=False)
    ]


@router.get("/v2/parse/formats", response_model=Done)
async def parse_formats(principal: Reader) -> Response:
    """List the supported kinds of files."""
    del principal
    return answer(200, success=True, data={"formats": formats_listed()})


def formats_listed() -> list[dict[str, Any]]:
    """Build the list of the kinds of files that hold text."""
    kinds = [(kind, *extensions_and_types(kind)) for kind in Kind]
    return [
        {
            "format": kind.value,
            "kind": "document",
            "extensions": [f".{ending}" for ending in endings],
            "mimeTypes": media_types,
            "available": True,
        }
        for kind, endings, media_types in kinds
        if endings
    ]
