"""Rendering by a browser: what to do with a page, and what came of it.

The fields of actions have the names that clients of Firecrawl send.
"""

from collections.abc import Hashable
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

Pixels = Annotated[int, Meta(ge=1, le=7680)]
PaperFormat = Literal[
    "A0", "A1", "A2", "A3", "A4", "A5", "A6", "Letter", "Legal", "Tabloid", "Ledger"
]


class BrowserUse(StrEnum):
    """Whether pages are rendered: where HTTP gives too little, always, or never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Viewport(Struct, frozen=True, forbid_unknown_fields=True):
    """The size of the browser's window in CSS pixels."""

    width: Pixels
    height: Annotated[int, Meta(ge=1, le=4320)]


class _Action(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One step on a page after it is ready."""


class Wait(_Action, frozen=True, kw_only=True, tag_field="type", tag="wait"):
    """Wait for a time or for an element; exactly one of both."""

    milliseconds: Annotated[int, Meta(gt=0, le=60_000)] | None = None
    selector: Annotated[str, Meta(min_length=1)] | None = None


class Click(_Action, frozen=True, kw_only=True, tag_field="type", tag="click"):
    """Click the first element that matches, or all of them."""

    selector: Annotated[str, Meta(min_length=1)]
    all: bool = False


class Write(_Action, frozen=True, kw_only=True, tag_field="type", tag="write"):
    """Type a text into the element that has the focus."""

    text: str


class Press(_Action, frozen=True, kw_only=True, tag_field="type", tag="press"):
    """Press a key, such as `Enter`."""

    key: Annotated[str, Meta(min_length=1)]


class Scroll(_Action, frozen=True, kw_only=True, tag_field="type", tag="scroll"):
    """Scroll the page, or an element, by its visible height."""

    direction: Literal["up", "down"] = "down"
    selector: Annotated[str, Meta(min_length=1)] | None = None


class Screenshot(_Action, frozen=True, kw_only=True, tag_field="type", tag="screenshot"):
    """Take a picture: PNG, or JPEG where a quality is given."""

    full_page: bool = False
    quality: Annotated[int, Meta(ge=1, le=100)] | None = None
    viewport: Viewport | None = None


class Scrape(_Action, frozen=True, kw_only=True, tag_field="type", tag="scrape"):
    """Return the HTML of this moment."""


class ExecuteJavascript(
    _Action, frozen=True, kw_only=True, tag_field="type", tag="executeJavascript"
):
    """Run a script in the page and return its value."""

    script: str


class Pdf(_Action, frozen=True, kw_only=True, tag_field="type", tag="pdf"):
    """Print the page as a PDF."""

    format: PaperFormat = "Letter"
    landscape: bool = False
    scale: Annotated[float, Meta(ge=0.1, le=2)] = 1.0


Action = Wait | Click | Write | Press | Scroll | Screenshot | Scrape | ExecuteJavascript | Pdf


class RenderOptions(Struct, frozen=True, kw_only=True):
    """How to render a page. `reason` says to people why a browser is used."""

    reason: str
    wait: float = 0.0
    """Seconds to wait once the page is ready, before any action."""
    actions: tuple[Action, ...] = ()
    screenshot: Screenshot | None = None
    scroll_to_end: bool = False
    block_ads: bool = True
    country: str | None = None
    """Sets the time zone and the position that the page sees."""
    shared_context: Hashable | None = None
    """Pages with an equal key share cookies and tabs; None is a fresh context."""

    @property
    def shows_pictures(self) -> bool:
        """Whether pictures and fonts count: for screenshots and PDFs."""
        return self.screenshot is not None or any(
            isinstance(action, Screenshot | Pdf) for action in self.actions
        )


class ActionScrape(Struct, frozen=True):
    """The HTML at a `scrape` action."""

    url: str
    html: str


class JavascriptReturn(Struct, frozen=True):
    """The value of a script, with its JavaScript type."""

    type: str
    value: object = None


class ActionResults(Struct, frozen=True):
    """What actions returned, by their kind and in their order."""

    screenshots: tuple[bytes, ...] = ()
    scrapes: tuple[ActionScrape, ...] = ()
    javascript_returns: tuple[JavascriptReturn, ...] = ()
    pdfs: tuple[bytes, ...] = ()


class Rendering(Struct, frozen=True, kw_only=True):
    """How a page was rendered, and what came of it besides its HTML."""

    reason: str
    ready: Literal["quiet", "timeout"]
    seconds: float
    requests: int
    failed_requests: int
    wire_bytes: int
    screenshot: bytes | None = None
    actions: ActionResults = ActionResults()
    action_error: str | None = None
    """Why an action failed; the results before it are there."""
    warning: str | None = None
