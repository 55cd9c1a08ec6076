"""POST /v2/parse: a file that the caller has, read as a page would be."""

from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Form, Response, UploadFile
from pydantic import Field, ValidationError

from trapline.api.access import Reader, Writer
from trapline.api.engine import CurrentEngine
from trapline.api.firecrawl import documents
from trapline.api.firecrawl.answers import DocumentAnswer, Done, responses
from trapline.api.firecrawl.documents import Facts, document
from trapline.api.firecrawl.refusals import CUSTOM, FirecrawlRoute, Refusal, answer
from trapline.api.firecrawl.scrape_options import ScrapeOptionsBody
from trapline.errors import VisitFailed
from trapline.extract.documents.kinds import Kind, spellings
from trapline.pipeline.reading import read_upload

MOST_BYTES: Final = 50 * 2**20
_CODE: Final = "PARSE_UNSUPPORTED_OPTIONS"
_NOT_FOR_FILES: Final = frozenset(
    {"changeTracking", "screenshot", "branding", "audio", "video", "rawBase64"}
)


class ParseRoute(FirecrawlRoute):
    """A route that takes files: more than JSON may have, and its envelope."""

    most_bytes = MOST_BYTES + 2**20


router = APIRouter(route_class=ParseRoute, tags=["firecrawl"], responses=responses())


class ParseOptions(ScrapeOptionsBody):
    """The part `options` of an upload."""

    zero_data_retention: bool = True
    origin: Annotated[str | None, Field(max_length=500)] = None
    integration: Annotated[str | None, Field(max_length=500)] = None


@router.post("/v2/parse", response_model=DocumentAnswer)
async def parse(
    who: Writer,
    parts: CurrentEngine,
    file: UploadFile,
    options: Annotated[str, Form(max_length=2**20)] = "{}",
) -> Response:
    """Read a file; nothing of it is kept."""
    del who
    body = _options(options)
    parts.model.require(body.wishes(), "The format json or question")
    scrape = body.scrape_options(zero_data_retention=True)
    content = await file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Refusal(413, f"The file is larger than {MOST_BYTES:,} bytes.")
    name = file.filename or "file"
    try:
        page = await read_upload(content, file.content_type, name, scrape)
    except VisitFailed as error:
        outcome = error.outcome
        raise Refusal(outcome.http_status, error.message, outcome.firecrawl_code) from None
    facts = Facts(url=name, source_url=name, status=200, content_type=page.content_type)
    out = document(page, body.names, facts)
    answers = await parts.model.answer(body.wishes(), page.markdown)
    documents.add_answers(out, answers.values, answers.warnings)
    return answer(200, success=True, data=out)


def _options(text: str) -> ParseOptions:
    """Read the options; what makes no sense for a file is refused."""
    try:
        given = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        raise Refusal(400, "The part options is not JSON.", "BAD_REQUEST_INVALID_JSON") from None
    try:
        body = ParseOptions.model_validate(given)
    except ValidationError as error:
        raise Refusal(400, _first(error), "BAD_REQUEST", _details(error)) from None
    wrong = body.names & _NOT_FOR_FILES
    wrong |= {
        name
        for name, is_set in (
            ("actions", bool(body.actions)),
            ("waitFor", bool(body.wait_for)),
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
async def parse_formats(who: Reader) -> Response:
    """List the kinds of files that can be read."""
    del who
    return answer(200, success=True, data={"formats": formats_listed()})


def formats_listed() -> list[dict[str, Any]]:
    """Build the list of kinds that have a name of their own and text in them."""
    known = [(kind, *spellings(kind)) for kind in Kind]
    return [
        {
            "format": kind.value,
            "kind": "document",
            "extensions": [f".{ending}" for ending in endings],
            "mimeTypes": media_types,
            "available": True,
        }
        for kind, endings, media_types in known
        if endings
    ]
