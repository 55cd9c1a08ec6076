"""The commands and events of the DevTools protocol that we use, as types."""

from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from trapline.fetch.browser.connection import Command, Empty, Event

# Browser and targets


class Version(Struct, frozen=True):
    product: str
    userAgent: str = ""  # noqa: N815 (the protocol's name)


class GetVersion(Command[Version], frozen=True):
    method: ClassVar[str] = "Browser.getVersion"
    result: ClassVar[Any] = Version


class CloseBrowser(Command[Empty], frozen=True):
    method: ClassVar[str] = "Browser.close"


class SetDownloadBehavior(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Browser.setDownloadBehavior"
    behavior: str
    browser_context_id: str


class GrantPermissions(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Browser.grantPermissions"
    permissions: list[str]
    browser_context_id: str


class ContextId(Struct, frozen=True, rename="camel"):
    browser_context_id: str


class CreateContext(Command[ContextId], frozen=True, kw_only=True):
    method: ClassVar[str] = "Target.createBrowserContext"
    result: ClassVar[Any] = ContextId
    dispose_on_detach: bool = False
    proxy_server: str = ""
    proxy_bypass_list: str = ""


class DisposeContext(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Target.disposeBrowserContext"
    browser_context_id: str


class TargetId(Struct, frozen=True, rename="camel"):
    target_id: str


class CreateTarget(Command[TargetId], frozen=True, kw_only=True):
    method: ClassVar[str] = "Target.createTarget"
    result: ClassVar[Any] = TargetId
    url: str
    browser_context_id: str
    width: int = 0
    height: int = 0


class CloseTarget(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Target.closeTarget"
    target_id: str


class SessionId(Struct, frozen=True, rename="camel"):
    session_id: str


class AttachToTarget(Command[SessionId], frozen=True, kw_only=True):
    method: ClassVar[str] = "Target.attachToTarget"
    result: ClassVar[Any] = SessionId
    target_id: str
    flatten: bool


class TargetCrashed(Event, frozen=True):
    method: ClassVar[str] = "Inspector.targetCrashed"


# Page


class EnablePage(Command[Empty], frozen=True):
    method: ClassVar[str] = "Page.enable"


class SetLifecycleEvents(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Page.setLifecycleEventsEnabled"
    enabled: bool


class AddScript(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Page.addScriptToEvaluateOnNewDocument"
    source: str
    world_name: str = ""


class Navigated(Struct, frozen=True, rename="camel"):
    frame_id: str
    loader_id: str = ""
    error_text: str = ""
    is_download: bool = False


class Navigate(Command[Navigated], frozen=True, kw_only=True):
    method: ClassVar[str] = "Page.navigate"
    result: ClassVar[Any] = Navigated
    url: str


class CrashPage(Command[Empty], frozen=True):
    method: ClassVar[str] = "Page.crash"


class World(Struct, frozen=True, rename="camel"):
    execution_context_id: int


class CreateIsolatedWorld(Command[World], frozen=True, kw_only=True):
    method: ClassVar[str] = "Page.createIsolatedWorld"
    result: ClassVar[Any] = World
    frame_id: str
    world_name: str


class HandleDialog(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Page.handleJavaScriptDialog"
    accept: bool


class Clip(Struct, frozen=True):
    x: float
    y: float
    width: float
    height: float
    scale: float = 1.0


class Data(Struct, frozen=True):
    data: bytes
    """Decoded from base64."""


class CaptureScreenshot(Command[Data], frozen=True, kw_only=True):
    method: ClassVar[str] = "Page.captureScreenshot"
    result: ClassVar[Any] = Data
    format: str
    quality: int | None = None
    clip: Clip | None = None
    capture_beyond_viewport: bool = False


class Size(Struct, frozen=True):
    width: float
    height: float


class LayoutMetrics(Struct, frozen=True, rename="camel"):
    css_content_size: Size


class GetLayoutMetrics(Command[LayoutMetrics], frozen=True):
    method: ClassVar[str] = "Page.getLayoutMetrics"
    result: ClassVar[Any] = LayoutMetrics


class PrintToPdf(Command[Data], frozen=True, kw_only=True):
    method: ClassVar[str] = "Page.printToPDF"
    result: ClassVar[Any] = Data
    landscape: bool
    scale: float
    paper_width: float
    paper_height: float
    print_background: bool


class LifecycleEvent(Event, frozen=True):
    method: ClassVar[str] = "Page.lifecycleEvent"
    frame_id: str
    loader_id: str
    name: str


class Frame(Struct, frozen=True, rename="camel"):
    id: str
    url: str
    loader_id: str = ""
    parent_id: str = ""


class FrameNavigated(Event, frozen=True):
    method: ClassVar[str] = "Page.frameNavigated"
    frame: Frame


class NavigatedWithinDocument(Event, frozen=True):
    method: ClassVar[str] = "Page.navigatedWithinDocument"
    frame_id: str
    url: str


class DialogOpening(Event, frozen=True):
    method: ClassVar[str] = "Page.javascriptDialogOpening"
    type: str


class DownloadWillBegin(Event, frozen=True):
    method: ClassVar[str] = "Page.downloadWillBegin"
    url: str


# Scripts


class Remote(Struct, frozen=True):
    type: str = "undefined"
    value: Any = None
    description: str = ""


class ScriptException(Struct, frozen=True):
    text: str = ""
    exception: Remote | None = None


class Evaluated(Struct, frozen=True, rename="camel"):
    result: Remote
    exception_details: ScriptException | None = None


class Evaluate(Command[Evaluated], frozen=True, kw_only=True):
    method: ClassVar[str] = "Runtime.evaluate"
    result: ClassVar[Any] = Evaluated
    expression: str
    context_id: int | None = None
    return_by_value: bool = False
    await_promise: bool = False
    user_gesture: bool = False


class TerminateExecution(Command[Empty], frozen=True):
    method: ClassVar[str] = "Runtime.terminateExecution"


# The DOM


class Node(Struct, frozen=True, rename="camel"):
    node_type: int
    local_name: str = ""
    node_name: str = ""
    node_value: str = ""
    attributes: list[str] = []
    children: list["Node"] = []
    shadow_roots: list["Node"] = []
    shadow_root_type: str = ""
    content_document: "Node | None" = None
    document_url: str = msgspec.field(default="", name="documentURL")


class Root(Struct, frozen=True):
    root: Node


class GetDocument(Command[Root], frozen=True, kw_only=True):
    method: ClassVar[str] = "DOM.getDocument"
    result: ClassVar[Any] = Root
    depth: int
    pierce: bool


# Network


class EnableNetwork(Command[Empty], frozen=True):
    method: ClassVar[str] = "Network.enable"


class SetBlockedUrls(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Network.setBlockedURLs"
    urls: list[str]


class SetExtraHeaders(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Network.setExtraHTTPHeaders"
    headers: dict[str, str]


class Cookie(Struct, frozen=True):
    name: str
    value: str
    url: str


class SetCookies(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Network.setCookies"
    cookies: list[Cookie]


class BypassServiceWorker(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Network.setBypassServiceWorker"
    bypass: bool


class IgnoreCertificateErrors(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Security.setIgnoreCertificateErrors"
    ignore: bool


class Response(Struct, frozen=True, rename="camel"):
    url: str
    status: int
    headers: dict[str, str]
    mime_type: str = ""


class SentRequest(Struct, frozen=True):
    url: str


class RequestSent(Event, frozen=True):
    method: ClassVar[str] = "Network.requestWillBeSent"
    request_id: str
    request: SentRequest
    type: str = ""
    frame_id: str = ""
    redirect_response: Response | None = None


class ResponseReceived(Event, frozen=True):
    method: ClassVar[str] = "Network.responseReceived"
    request_id: str
    response: Response
    type: str = ""
    frame_id: str = ""


class ResponseHeaders(Event, frozen=True):
    method: ClassVar[str] = "Network.responseReceivedExtraInfo"
    request_id: str
    headers: dict[str, str]


class LoadingFinished(Event, frozen=True):
    method: ClassVar[str] = "Network.loadingFinished"
    request_id: str
    encoded_data_length: float = 0.0


class LoadingFailed(Event, frozen=True):
    method: ClassVar[str] = "Network.loadingFailed"
    request_id: str
    error_text: str = ""
    canceled: bool = False


# Interception of documents


class RequestPattern(Struct, frozen=True, rename="camel"):
    url_pattern: str
    resource_type: str


class EnableFetch(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Fetch.enable"
    patterns: list[RequestPattern]


class PausedRequest(Struct, frozen=True):
    url: str
    headers: dict[str, str]


class RequestPaused(Event, frozen=True):
    method: ClassVar[str] = "Fetch.requestPaused"
    request_id: str
    frame_id: str
    request: PausedRequest
    network_id: str = ""


class Header(Struct, frozen=True):
    name: str
    value: str


class ContinueRequest(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Fetch.continueRequest"
    request_id: str
    headers: list[Header] | None = None


class FailRequest(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Fetch.failRequest"
    request_id: str
    error_reason: str


# Emulation and input


class SetUserAgent(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Emulation.setUserAgentOverride"
    user_agent: str
    accept_language: str = ""


class SetDeviceMetrics(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Emulation.setDeviceMetricsOverride"
    width: int
    height: int
    device_scale_factor: float
    mobile: bool


class SetTouch(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Emulation.setTouchEmulationEnabled"
    enabled: bool


class SetTimezone(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Emulation.setTimezoneOverride"
    timezone_id: str


class SetGeolocation(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Emulation.setGeolocationOverride"
    latitude: float
    longitude: float
    accuracy: float


class MouseEvent(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Input.dispatchMouseEvent"
    type: str
    x: float
    y: float
    button: str
    click_count: int


class KeyEvent(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Input.dispatchKeyEvent"
    type: str
    key: str
    code: str = ""
    text: str = ""
    windows_virtual_key_code: int = 0


class InsertText(Command[Empty], frozen=True, kw_only=True):
    method: ClassVar[str] = "Input.insertText"
    text: str
