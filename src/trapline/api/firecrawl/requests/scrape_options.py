"""Scrape options, and their translation to pipeline options."""

from typing import Annotated, Any, Final, Literal, Self, TypeVar

import msgspec
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from trapline.api.firecrawl.errors import Refusal
from trapline.api.firecrawl.requests import formats
from trapline.api.firecrawl.requests.base_models import Country, Headers, Milliseconds, Wire, wrong
from trapline.api.firecrawl.requests.formats import (
    Attributes,
    ChangeTracking,
    Format,
    Formats,
    Json,
    Query,
    Question,
)
from trapline.extract.redaction import ENTITIES, WITHOUT_FORM, Entity, Redaction, Style
from trapline.model import Format as Kind
from trapline.pipeline.crawl.change_tracking import GIT_DIFF
from trapline.pipeline.options import AttributeSelector, LlmRequest, ScrapeOptions, Tracking
from trapline.rendering import Action, BrowserUse, Screenshot, Viewport

FOUR_HOURS: Final = 4 * 3600 * 1000
_LONGEST_WAIT: Final = 60_000
_MAX_ACTIONS: Final = 50
_SCRAPE_ONLY: Final = "Screenshots and actions are only possible with POST /v2/scrape."
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

_NOT_REDACTED: Final = frozenset(
    {"html", "rawHtml", "rawBase64", "attributes", "branding", "screenshot"}
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


class RedactionBody(Wire):
    """Which personal data to redact, and what stands in its place."""

    mode: Literal["accurate", "aggressive", "fast"] = "accurate"
    entities: Annotated[list[Entity], Field(min_length=1, max_length=6)] | None = None
    replace_style: Style = "tag"

    def redaction(self) -> Redaction:
        entities = frozenset(ENTITIES if self.entities is None else self.entities)
        return Redaction(entities, self.replace_style, self.mode == "aggressive")


def _checked(values: list[Format]) -> list[Format]:
    formats.check(values)
    return values


def _valid_actions(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(actions) > _MAX_ACTIONS:
        raise wrong(f"Number of actions cannot exceed {_MAX_ACTIONS}")
    _actions(actions)
    return actions


def _actions(actions: list[dict[str, Any]]) -> tuple[Action, ...]:
    try:
        return msgspec.convert(actions, tuple[Action, ...])
    except msgspec.ValidationError as error:
        raise wrong(f"actions: {error}") from None


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
    actions: Annotated[list[dict[str, Any]], AfterValidator(_valid_actions)] = []
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
    browser: Literal["auto", "always", "never"] = "auto"
    redact_pii: Annotated[bool | RedactionBody | None, Field(alias="redactPII")] = None
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

    @property
    def redaction(self) -> Redaction | None:
        """Return what to redact of the document, if anything."""
        body = self._redaction_body
        return None if body is None else body.redaction()

    @property
    def names_are_redacted(self) -> bool:
        """Whether a language model looks for names, which have no form."""
        body = self._redaction_body
        return body is not None and body.mode != "fast"

    @property
    def _redaction_body(self) -> RedactionBody | None:
        if isinstance(self.redact_pii, RedactionBody):
            return self.redact_pii
        return RedactionBody() if self.redact_pii else None

    def warnings(self) -> list[str]:
        """Return a sentence for each option that is accepted and has no effect here."""
        return [*self._ignored(), *self._redaction_warning()]

    def _ignored(self) -> list[str]:
        pdf = next((p for p in self.parsers or () if isinstance(p, PdfParser)), None)
        ignored = {
            "onlyCleanContent": self.only_clean_content,
            "proxy": self.proxy in {"stealth", "enhanced"},
            "fastMode": self.fast_mode,
            "useMock": self.use_mock is not None,
            "threatProtection": self.threat_protection is not None,
            "auditMetadata": self.audit_metadata is not None,
            "checkPromptInjection": bool(self.check_prompt_injection),
            "safeMode": bool(self.safe_mode),
            "domainTools": bool(self.domain_tools),
            "toolDetail": self.tool_detail is not None,
            "parsers.mode": pdf is not None and pdf.mode == "ocr",
            "parsers.pages": pdf is not None and pdf.pages is not None,
            "parsers.blocks": pdf is not None and bool(pdf.blocks),
            "parsers.pageMarkers": pdf is not None and bool(pdf.page_markers),
        }
        return ignored_options(ignored)

    def _redaction_warning(self) -> list[str]:
        if self.redaction is None or self.names_are_redacted:
            return []
        return ["redactPII: the mode fast finds no names of people and places."]

    def the(self, kind: type[T]) -> T | None:
        """Return the requested format of this type, if any."""
        return next((item for item in self.formats if isinstance(item, kind)), None)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(item.type for item in self.formats)

    def llm_requests(self) -> tuple[LlmRequest, ...]:
        """Return the requests to a language model."""
        requests = []
        for item in self.formats:
            if isinstance(item, Json):
                requests.append(LlmRequest("json", item.prompt, item.json_schema))
            elif isinstance(item, Question):
                requests.append(LlmRequest("question", item.question))
            elif isinstance(item, Query):
                requests.append(LlmRequest("question", item.prompt))
            elif item.type == "summary":
                requests.append(LlmRequest("summary"))
        return tuple(requests)

    def all_llm_requests(self) -> tuple[LlmRequest, ...]:
        """Return all requests to a language model, including that of change tracking."""
        change = self.the(ChangeTracking)
        fields = None if change is None else change.fields
        return self.llm_requests() if fields is None else (*self.llm_requests(), fields)

    def scrape_options(self, *, zero_data_retention: bool = False) -> ScrapeOptions:
        """Translate the options; an unsupported one is refused by its name."""
        self._refuse()
        selectors = self.the(Attributes)
        parsers = self.parsers if self.parsers is not None else [PdfParser(type="pdf")]
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
            llm_requests=self.llm_requests(),
            tracking=self._tracking(),
            with_body="rawBase64" in self.names,
            read_files=bool(parsers),
            max_pages=self.max_pages,
            headers=self.headers,
            timeout=None if self.timeout is None else self.timeout / 1000,
            mobile=self.mobile,
            languages=tuple(self.location.languages) if self.location else (),
            country=self.location.country if self.location else None,
            verify_tls=not self._skips_tls(),
            # A stored answer would hide every change since.
            max_age=0.0 if self.the(ChangeTracking) else self.max_age / 1000,
            browser=BrowserUse(self.browser),
            wait=self.wait_for / 1000,
            actions=_actions(self.actions),
            screenshot=self._screenshot(),
            block_ads=self.block_ads,
            min_age=None if self.min_age is None else self.min_age / 1000,
            only_cached=self.lockdown,
            store=self.store_in_cache,
            zero_data_retention=zero_data_retention,
        )
        options.check()
        return options

    def _screenshot(self) -> Screenshot | None:
        picture = self.the(formats.Screenshot)
        if picture is None:
            return None
        size = picture.viewport
        return Screenshot(
            full_page=picture.full_page,
            quality=picture.quality,
            viewport=None if size is None else Viewport(size.width, size.height),
        )

    @property
    def max_pages(self) -> int | None:
        """The most pages of a PDF to read."""
        pdf = next((p for p in self.parsers or () if isinstance(p, PdfParser)), None)
        return None if pdf is None else pdf.max_pages

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
        return not self.headers and not self.actions

    def _refuse(self) -> None:
        if self.profile is not None:
            raise Refusal(
                400,
                "profile is not supported: this server keeps no browser profiles.",
                "SCRAPE_ACTIONS_NOT_SUPPORTED",
            )
        self._refuse_redaction()
        for name in sorted(self.names & _NOT_HERE):
            raise Refusal(400, f"The format {name} is not supported by this server.", "BAD_REQUEST")

    def _refuse_redaction(self) -> None:
        """Refuse what redaction would not cover: the caller asked that no personal data leaves."""
        if self.redaction is None:
            return
        for name in sorted(self.names & _NOT_REDACTED):
            raise Refusal(400, f"redactPII does not cover the format {name}.", "BAD_REQUEST")
        if self.actions:
            raise Refusal(400, "redactPII does not cover actions.", "BAD_REQUEST")
        body = self._redaction_body
        entities = () if body is None or body.entities is None else body.entities
        if not self.names_are_redacted and WITHOUT_FORM & set(entities):
            raise Refusal(
                400, "redactPII: the mode fast finds no PERSON or LOCATION.", "BAD_REQUEST"
            )


def ignored_options(ignored: dict[str, bool]) -> list[str]:
    """Return a sentence that names the ignored options, if there are any."""
    names = [name for name, is_ignored in ignored.items() if is_ignored]
    return [f"This server ignores {', '.join(names)}."] if names else []


def for_job(scrape: ScrapeOptions) -> ScrapeOptions:
    """Refuse what a browser returns besides the page: a job stores the text of its pages alone."""
    if scrape.has_results:
        raise Refusal(400, _SCRAPE_ONLY, "SCRAPE_ACTIONS_NOT_SUPPORTED")
    return scrape
