"""The option redactPII of a request: its names, its warning, and its part of a job's metadata."""

from typing import Any, Final

from trapline.api.firecrawl.requests.scrape_options import ScrapeOptionsBody
from trapline.errors import InvalidInput
from trapline.extract.redaction import WITHOUT_FORM, Redaction
from trapline.model import Document
from trapline.pipeline.llm import LanguageModel
from trapline.pipeline.reports import job_document
from trapline.pipeline.scrape import pii_names

_NO_MODEL: Final = "redactPII: names of people and places stay, because no language model is set."
IN_JOBS: Final = "redactPII: names of people and places are redacted in single scrapes alone."


def require_names(model: LanguageModel, body: ScrapeOptionsBody) -> None:
    """Refuse a request that names entities which nothing here finds."""
    redact = body.redact_pii
    named = () if redact is None or isinstance(redact, bool) else redact.entities or ()
    if not model.available and WITHOUT_FORM & set(named):
        raise InvalidInput("redactPII needs a language model (TRAPLINE_LLM_URL) to find names.")


async def find_names(
    model: LanguageModel, body: ScrapeOptionsBody, page: Document
) -> tuple[Redaction | None, int]:
    """Return the redaction with the names of a page, and the tokens used to find them."""
    redaction = body.redaction
    if redaction is None or not body.names_are_redacted:
        return redaction, 0
    redaction, used = await pii_names.add_names(model, redaction, page.markdown)
    return redaction, used.total


def names_warning(model: LanguageModel, body: ScrapeOptionsBody) -> list[str]:
    """Return a warning where names would be redacted if there was a language model."""
    return [_NO_MODEL] if body.names_are_redacted and not model.available else []


def job_details(body: ScrapeOptionsBody, **more: Any) -> dict[str, Any]:
    """Return the part of a job's metadata that its documents are built from."""
    details = {job_document.FORMATS: sorted(body.names), "version": "v2"} | more
    redaction = body.redaction
    return details if redaction is None else details | job_document.redaction_details(redaction)


def job_warnings(body: ScrapeOptionsBody) -> list[str]:
    """Return the warnings about the scrape options of a job."""
    return [*body.warnings(), *([IN_JOBS] if body.names_are_redacted else [])]
