"""The document formats that a request can name."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from trapline.api.firecrawl.requests.base_models import JsonSchema, Prompt, Wire, wrong
from trapline.pipeline.crawl.change_tracking import JSON
from trapline.pipeline.options import LlmRequest


class Plain(Wire):
    """A format without options."""

    type: Literal[
        "markdown",
        "html",
        "rawHtml",
        "rawBase64",
        "links",
        "images",
        "summary",
        "branding",
        "product",
        "menu",
        "audio",
        "video",
        "deterministicJson",
    ]


class Json(Wire):
    """Data by a schema or a prompt."""

    type: Literal["json"]
    json_schema: Annotated[JsonSchema | None, Field(alias="schema")] = None
    prompt: Prompt | None = None

    @model_validator(mode="after")
    def _useful(self) -> Self:
        schema = self.json_schema
        if (
            schema is not None
            and schema.get("type") == "object"
            and not schema.get("properties")
            and schema.get("additionalProperties") is True
        ):
            raise wrong("An object schema without properties says nothing; name its properties.")
        return self


class ChangeTracking(Wire):
    """The changes since the last scrape."""

    type: Literal["changeTracking"]
    modes: list[Literal["git-diff", "json"]] = []
    json_schema: Annotated[JsonSchema | None, Field(alias="schema")] = None
    prompt: Prompt | None = None
    tag: Annotated[str | None, Field(max_length=200)] = None

    @property
    def fields(self) -> LlmRequest | None:
        """Return the fields that a language model extracts for changes by field."""
        return LlmRequest("json", self.prompt, self.json_schema) if JSON in self.modes else None


class Viewport(Wire):
    """The size of a browser's window."""

    width: Annotated[int, Field(ge=1, le=7680)]
    height: Annotated[int, Field(ge=1, le=4320)]


class Screenshot(Wire):
    """A picture of the page."""

    type: Literal["screenshot"]
    full_page: bool = False
    quality: Annotated[int | None, Field(ge=1, le=100)] = None
    viewport: Viewport | None = None


class Selector(Wire):
    """An attribute of the elements that a selector finds."""

    selector: Annotated[str, Field(min_length=1, max_length=1000)]
    attribute: Annotated[str, Field(min_length=1, max_length=200)]


class Attributes(Wire):
    """Values of attributes."""

    type: Literal["attributes"]
    selectors: Annotated[list[Selector], Field(min_length=1, max_length=100)]


class Question(Wire):
    """An answer from the page."""

    type: Literal["question"]
    question: Prompt


class Highlights(Wire):
    """The parts of a page that a query is about."""

    type: Literal["highlights"]
    query: Prompt


class Query(Wire):
    """The older form of a question."""

    type: Literal["query"]
    prompt: Prompt
    mode: str | None = None


Format = Annotated[
    Plain | Json | ChangeTracking | Screenshot | Attributes | Question | Highlights | Query,
    Field(discriminator="type"),
]


def _objects(value: Any) -> Any:
    """Read a string as a format without options."""
    if not isinstance(value, list):
        return value
    return [{"type": item} if isinstance(item, str) else item for item in value]


Formats = Annotated[list[Format], BeforeValidator(_objects), Field(max_length=50)]
DEFAULT: Final = (Plain(type="markdown"),)


def check(formats: list[Format]) -> None:
    """Refuse formats that exclude each other."""
    names = [item.type for item in formats]
    if names.count("screenshot") > 1:
        raise wrong("At most one screenshot can be asked for.")
    if "rawBase64" in names and len(names) > 1:
        raise wrong("The format rawBase64 cannot be combined with others.")
    if "json" in names and "deterministicJson" in names:
        raise wrong("The formats json and deterministicJson exclude each other.")
    if "changeTracking" in names and "markdown" not in names:
        raise wrong("The format changeTracking needs the format markdown too.")
