"""Options of a crawl from a sentence: a language model fills in what the caller did not say."""

from typing import Any, Final

from pydantic import ValidationError

from trapline.api.firecrawl.crawl_request import CrawlBody
from trapline.api.firecrawl.refusals import Refusal
from trapline.errors import TraplineError
from trapline.pipeline.language import LanguageModel
from trapline.pipeline.options import Wish

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
    """Return the crawl with the options that its prompt means; what the caller said stays."""
    wish = Wish("json", f"{_TASK}{body.prompt}", _SCHEMA)
    model.require([wish], "A crawl by prompt")
    try:
        generated, _ = await model.ask(wish, f"The crawl starts at {body.url}")
        given = body.model_dump(by_alias=True, exclude_unset=True)
        filled = CrawlBody.model_validate({**generated, **given})
        filled.crawl_options()
    except ValidationError as error:
        raise Refusal(
            400, f"The prompt gave no usable options: {error.errors()[0]['msg']}"
        ) from None
    except TraplineError as error:
        raise Refusal(400, f"The prompt gave no usable options: {error.message}") from None
    return filled, generated
