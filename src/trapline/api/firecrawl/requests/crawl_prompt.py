"""Crawl options from a prompt: a language model fills in the options that the caller left out."""

from typing import Any, Final

from pydantic import ValidationError

from trapline.api.firecrawl.errors import Refusal
from trapline.api.firecrawl.requests.crawl_request import CrawlBody
from trapline.errors import TraplineError
from trapline.pipeline.llm import LanguageModel
from trapline.pipeline.options import LlmRequest

_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "includePaths": {"type": "array", "items": {"type": "string"}},
        "excludePaths": {"type": "array", "items": {"type": "string"}},
        "maxDiscoveryDepth": {"type": "integer", "minimum": 0},
        "limit": {"type": "integer", "minimum": 1},
        "crawlEntireDomain": {"type": "boolean"},
        "allowExternalLinks": {"type": "boolean"},
        "allowSubdomains": {"type": "boolean"},
        "sitemap": {"enum": ["skip", "include", "only"]},
        "ignoreQueryParameters": {"type": "boolean"},
    },
}
_TASK: Final = (
    "Turn what a user wants crawled into options of a crawler. includePaths and excludePaths are"
    " regular expressions for URL paths, such as ^/blog/.*$. Leave out every option that the wish"
    " says nothing about. The wish: "
)


async def crawl_from_prompt(
    model: LanguageModel, body: CrawlBody
) -> tuple[CrawlBody, dict[str, Any]]:
    """Return the crawl with the options from its prompt; the caller's own options stay."""
    llm_request = LlmRequest("json", f"{_TASK}{body.prompt}", _SCHEMA)
    model.require([llm_request], "A crawl by prompt")
    try:
        generated, _ = await model.ask(llm_request, f"The crawl starts at {body.url}")
        explicit = body.model_dump(by_alias=True, exclude_unset=True)
        filled = CrawlBody.model_validate({**generated, **explicit})
        filled.crawl_options()
    except ValidationError as error:
        raise Refusal(
            400, f"The prompt gave no usable options: {error.errors()[0]['msg']}"
        ) from None
    except TraplineError as error:
        raise Refusal(400, f"The prompt gave no usable options: {error.message}") from None
    return filled, generated
