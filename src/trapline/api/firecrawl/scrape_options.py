"""Scrape options on the wire, and what they mean to the pipeline."""

from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from trapline.api.firecrawl import formats
from trapline.api.firecrawl.fields import Country, Headers, Milliseconds, Wire, wrong
from trapline.api.firecrawl.formats import (
    Attributes,
    ChangeTracking,
    Format,
    Formats,
    Json,
    Query,
    Question,
)
from trapline.api.firecrawl.refusals import Refusal
from trapline.model import Format as Kind
from trapline.pipeline.options import AttributeSelector, ScrapeOptions, Tracking, Wish
from trapline.pipeline.tracking import GIT_DIFF

FOUR_HOURS: Final = 4 * 3600 * 1000
_LONGEST_WAIT: Final = 60_000
_BROWSER: Final = "it needs a browser, which this server does not have"
_KINDS: Final = {
    "markdown": Kind.MARKDOWN,
    "html": Kind.HTML,
    "rawHtml": Kind.RAW_HTML,
    "links": Kind.LINKS,
    "images": Kind.IMAGES,
    "summary": Kind.SUMMARY,
    "branding": Kind.BRANDING,
}
# What they are made of, for the formats that a language model makes.
NEEDS_MODEL: Final = "The format json or question, or changeTracking in the mode json,"
_FROM_MARKDOWN: Final = frozenset({"json", "question", "query", "changeTracking"})
_NOT_HERE: Final = frozenset(
    {"product", "menu", "audio", "video", "deterministicJson", "highlights"}
)

T = TypeVar("T", bound=Wire)


class PdfParser(Wire):
    """How a PDF is read."""

    type: Literal["pdf"]
    mode: Literal["fast", "auto", "ocr"] = "auto"
    max_pages: Annotated[int | None, Field(ge=1, le=10_000)] = None
    pages: Any = None
    blocks: bool | None = None
    page_markers: bool | None = None


class ImageParser(Wire):
    """How an image is read."""

    type: Literal["image"]


Parsers = Annotated[
    list[Annotated[PdfParser | ImageParser, Field(discriminator="type")]],
    BeforeValidator(
        lambda v: (
            [{"type": i} if isinstance(i, str) else i for i in v] if isinstance(v, list) else v
        )
    ),
    Field(max_length=10),
]


class Location(Wire):
    """Where the request seems to come from."""

    country: Country = "US"
    languages: Annotated[list[Annotated[str, Field(max_length=35)]], Field(max_length=20)] = []


class Profile(Wire):
    """A browser profile."""

    name: Annotated[str, Field(max_length=128)]
    save_changes: bool = True


def _checked(wanted: list[Format]) -> list[Format]:
    formats.check(wanted)
    return wanted


class ScrapeOptionsBody(Wire):
    """All options of a scrape, as they stand in a scrape request or inside `scrapeOptions`."""

    formats: Annotated[Formats, AfterValidator(_checked)] = list(formats.DEFAULT)
    headers: Headers = {}
    include_tags: Annotated[list[str], Field(max_length=200)] = []
    exclude_tags: Annotated[list[str], Field(max_length=200)] = []
    only_main_content: bool = True
    only_clean_content: bool = False
    timeout: Annotated[int | None, Field(ge=1000, le=3_600_000)] = None
    wait_for: Annotated[int, Field(ge=0, le=_LONGEST_WAIT)] = 0
    mobile: bool = False
    parsers: Parsers | None = None
    actions: Annotated[list[dict[str, Any]], Field(max_length=50)] = []
    location: Location | None = None
    skip_tls_verification: bool | None = None
    remove_base64_images: bool = True
    block_ads: bool = True
    proxy: Literal["basic", "stealth", "enhanced", "auto"] = "auto"
    max_age: Milliseconds = FOUR_HOURS
    min_age: Milliseconds | None = None
    store_in_cache: bool = True
    lockdown: bool = False
    fast_mode: bool = False
    use_mock: str | None = None
    profile: Profile | None = None
    redact_pii: Annotated[Any, Field(alias="redactPII")] = None
    threat_protection: Any = None
    audit_metadata: Any = None
    check_prompt_injection: bool | None = None
    safe_mode: Any = None
    domain_tools: Any = None
    tool_detail: Any = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.timeout is not None and self.wait_for > self.timeout / 2:
            raise wrong("waitFor must not exceed half of timeout")
        return self

    def the(self, kind: type[T]) -> T | None:
        """Return the format of this type, if it is asked for."""
        return next((wanted for wanted in self.formats if isinstance(wanted, kind)), None)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(wanted.type for wanted in self.formats)

    def wishes(self) -> tuple[Wish, ...]:
        """Return what a language model is to be asked."""
        asked = []
        for wanted in self.formats:
            if isinstance(wanted, Json):
                asked.append(Wish("json", wanted.prompt, wanted.json_schema))
            elif isinstance(wanted, Question):
                asked.append(Wish("question", wanted.question))
            elif isinstance(wanted, Query):
                asked.append(Wish("question", wanted.prompt))
            elif wanted.type == "summary":
                asked.append(Wish("summary"))
        return tuple(asked)

    def needed(self) -> tuple[Wish, ...]:
        """Return all that cannot be answered without a language model."""
        change = self.the(ChangeTracking)
        fields = None if change is None else change.fields
        return self.wishes() if fields is None else (*self.wishes(), fields)

    def scrape_options(self, *, zero_data_retention: bool = False) -> ScrapeOptions:
        """Translate; what this server cannot do is refused by its name."""
        self._refuse()
        selectors = self.the(Attributes)
        parsers = self.parsers if self.parsers is not None else [PdfParser(type="pdf")]
        pdf = next((parser for parser in parsers if isinstance(parser, PdfParser)), None)
        options = ScrapeOptions(
            formats=self._kinds(),
            only_main_content=self.only_main_content,
            include_tags=tuple(self.include_tags),
            exclude_tags=tuple(self.exclude_tags),
            remove_base64_images=self.remove_base64_images,
            attributes=tuple(
                AttributeSelector(s.selector, s.attribute)
                for s in (selectors.selectors if selectors else ())
            ),
            wishes=self.wishes(),
            tracking=self._tracking(),
            with_body="rawBase64" in self.names,
            read_files=bool(parsers),
            max_pages=None if pdf is None else pdf.max_pages,
            headers=self.headers,
            timeout=None if self.timeout is None else self.timeout / 1000,
            mobile=self.mobile,
            languages=tuple(self.location.languages) if self.location else (),
            country=self.location.country if self.location else None,
            verify_tls=not self._skips_tls(),
            max_age=self.max_age / 1000,
            min_age=None if self.min_age is None else self.min_age / 1000,
            only_cached=self.lockdown,
            store=self.store_in_cache,
            zero_data_retention=zero_data_retention,
        )
        options.check()
        return options

    def _tracking(self) -> Tracking | None:
        change = self.the(ChangeTracking)
        if change is None:
            return None
        tag = (change.tag or "").replace("\x00", "")
        return Tracking(tag, GIT_DIFF in change.modes, change.fields)

    def _kinds(self) -> frozenset[Kind]:
        kinds = {_KINDS[name] for name in self.names if name in _KINDS}
        if self.names & _FROM_MARKDOWN:
            kinds.add(Kind.MARKDOWN)
        return frozenset(kinds)

    def _skips_tls(self) -> bool:
        if self.skip_tls_verification is not None:
            return self.skip_tls_verification
        return not self.headers

    def _refuse(self) -> None:
        if self.actions:
            raise _unsupported("actions", "SCRAPE_ACTIONS_NOT_SUPPORTED")
        if self.wait_for:
            raise _unsupported("waitFor", "SCRAPE_ACTIONS_NOT_SUPPORTED")
        if "screenshot" in self.names:
            raise _unsupported("the format screenshot", "SCRAPE_ACTIONS_NOT_SUPPORTED")
        if self.profile is not None:
            raise _unsupported("profile", "SCRAPE_ACTIONS_NOT_SUPPORTED")
        for name in sorted(self.names & _NOT_HERE):
            raise Refusal(400, f"The format {name} is not supported by this server.", "BAD_REQUEST")


def _unsupported(what: str, code: str) -> Refusal:
    return Refusal(400, f"{what} is not supported: {_BROWSER}.", code)
