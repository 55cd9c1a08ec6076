"""The loading of one page in a tab: every document request approved and traced, until it is at rest."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch.browser import commands as cdp
from trapline.fetch.browser.connection import CommandTimeout, ProtocolError
from trapline.fetch.browser.net_errors import network_failure
from trapline.fetch.browser.readiness import (
    QUIET_FOR,
    QUIET_SECONDS,
    TICKER_SECONDS,
    Activity,
)
from trapline.fetch.browser.socks_proxy import Traffic
from trapline.fetch.browser.tab import Tab
from trapline.fetch.outcome import PERMANENT
from trapline.fetch.target import Target, parse_target
from trapline.model import (
    FetchLimits,
    FetchRequest,
    RedirectSource,
    RedirectTrace,
    RequestTrace,
)

_ABORTED: Final = "net::ERR_ABORTED"
_MAX_FRAMES: Final = 100
_PROBE_SECONDS: Final = 1.0
_HEADER_LINES: Final = "\n"


@dataclass(frozen=True, slots=True)
class _Sent:
    """A document request that was let go."""

    at: datetime
    clock: float
    robots_approved: bool


class PageLoad:
    """Follows one page. `secrets` are headers for the origin that the caller meant."""

    def __init__(
        self,
        tab: Tab,
        request: FetchRequest,
        limits: FetchLimits,
        secrets: Mapping[str, str],
        max_requests: int,
    ) -> None:
        self.tab = tab
        self.activity = Activity()
        self.requests: list[RequestTrace] = []
        self.redirects: list[RedirectTrace] = []
        self.response: cdp.Response | None = None
        self.headers: tuple[tuple[str, str], ...] = ()
        self.failure: VisitFailed | None = None
        self.download: str | None = None
        # The main frame of a target has the target's id.
        self.frame_id = tab.target_id
        self.url = request.url
        self.wire_bytes = 0
        self._request = request
        self._limits = limits
        self._secrets = secrets
        self._first = parse_target(request.url, limits.url_bytes)
        self._max_requests = max_requests
        self._sent: dict[str, _Sent] = {}
        self._document_request = ""
        self._raw_headers: dict[str, dict[str, str]] = {}
        self._frames = 0
        self._stopped = False
        self._interactive = asyncio.Event()
        self._failed = asyncio.Event()

    @property
    def traffic(self) -> Traffic:
        return self.tab.context.proxy.traffic

    def listen(self) -> None:
        session = self.tab.session
        session.on(cdp.RequestPaused, self._on_paused)
        session.on(cdp.RequestSent, self._on_sent)
        session.on(cdp.ResponseReceived, self._on_response)
        session.on(cdp.ResponseHeaders, self._on_headers)
        session.on(cdp.LoadingFinished, self._on_finished)
        session.on(cdp.LoadingFailed, self._on_failed)
        session.on(cdp.LifecycleEvent, self._on_lifecycle)
        session.on(cdp.FrameNavigated, self._on_navigated)
        session.on(cdp.NavigatedWithinDocument, self._on_moved)
        session.on(cdp.DownloadWillBegin, self._on_download)

    def stop(self) -> None:
        """Refuse further navigation: the page is being read."""
        self._stopped = True

    async def navigate(self, seconds: float) -> None:
        """Go to the URL and wait until its document is there; raises VisitFailed."""
        navigation = asyncio.create_task(
            self.tab.session.call(cdp.Navigate(url=self._first.text), seconds)
        )
        crash = asyncio.create_task(self.tab.crashed.wait())
        failed = asyncio.create_task(self._failed.wait())
        try:
            await asyncio.wait((navigation, crash, failed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (crash, failed):
                task.cancel()
            if not navigation.done():
                navigation.cancel()
        if self.failure is not None:
            raise self.failure
        if self.tab.crashed.is_set():
            raise VisitFailed(ExitCode.PAGE_CRASHED)
        self._check(await _navigated(navigation))

    def _check(self, done: cdp.Navigated) -> None:
        if self.download is not None or done.is_download:
            self.download = self.download or self.url
        elif done.error_text == _ABORTED and self.response is not None:
            # A response that the browser does not show, such as 204 or a file.
            self.download = self.url
        elif done.error_text:
            raise self._network_failure(done.error_text)

    def _network_failure(self, text: str) -> VisitFailed:
        if self.failure is not None:
            return self.failure
        try:
            goal = parse_target(self.url, self._limits.url_bytes)
        except VisitFailed as error:
            return error
        reason = self.traffic.failures.get((goal.host.strip("[]"), goal.port))
        return reason or network_failure(text)

    async def settle(self, seconds: float) -> bool:
        """Wait until the page is at rest, at most so long; tell whether it is."""
        try:
            async with asyncio.timeout(seconds):
                await self._interactive.wait()
                await self.activity.wait_quiet()
                await self._wait_still()
        except TimeoutError:
            return False
        return True

    async def _wait_still(self) -> None:
        """Wait until the DOM has not changed for the quiet time."""
        latest = time.monotonic() + TICKER_SECONDS
        while time.monotonic() < latest:
            try:
                quiet = await self.tab.evaluate(
                    QUIET_FOR, seconds=_PROBE_SECONDS, frame_id=self.frame_id
                )
            except CommandTimeout as error:
                raise TimeoutError from error
            except ProtocolError:
                # The document was replaced under the question.
                await asyncio.sleep(QUIET_SECONDS)
                await self._interactive.wait()
                continue
            if quiet >= 1000 * QUIET_SECONDS:
                return
            await asyncio.sleep(QUIET_SECONDS - quiet / 1000)
            await self.activity.wait_quiet()

    def finish(self, code: ExitCode) -> None:
        """Close the trace of the last document."""
        if self.response is not None:
            self._record(self.url, self.response.status, code)

    # Events

    def _on_paused(self, event: cdp.RequestPaused) -> None:
        self.tab.context.spawn(self._judge(event))

    async def _judge(self, event: cdp.RequestPaused) -> None:
        """Let a document request go, or fail it."""
        main = self._is_main(event.frame_id)
        try:
            if not main:
                self._frames += 1
            refused = self._stopped if main else self._frames > _MAX_FRAMES
            headers = await self._approve(event) if main and not refused else None
        except VisitFailed as error:
            self.failure, refused = error, True
            self._failed.set()
        session = self.tab.session
        if refused:
            await session.call(cdp.FailRequest(request_id=event.request_id, error_reason="Aborted"))
        else:
            await session.call(cdp.ContinueRequest(request_id=event.request_id, headers=headers))

    async def _approve(self, event: cdp.RequestPaused) -> list[cdp.Header] | None:
        """Ask for the approval of a document of the page itself; return its headers."""
        goal = parse_target(event.request.url.partition("#")[0], self._limits.url_bytes)
        if len(self.redirects) > self._limits.redirects:
            raise VisitFailed(ExitCode.TOO_MANY_REDIRECTS, f"more than {self._limits.redirects}")
        self._follow_script(goal, event.network_id)
        approval = await self._request.approve(goal.text)
        if approval.refusal is not None:
            self.url = goal.text
            raise VisitFailed(approval.refusal, approval.detail)
        self._sent[goal.text] = _Sent(
            datetime.now(UTC), time.perf_counter(), approval.robots_approved
        )
        self._document_request = event.network_id
        self.url = goal.text
        if not self._secrets or not self._first.may_share_secrets(goal):
            return None
        headers = event.request.headers | dict(self._secrets)
        return [cdp.Header(name, value) for name, value in headers.items()]

    def _follow_script(self, goal: Target, network_id: str) -> None:
        """Record that a script, not the server, sent us to another document."""
        if not self._document_request or network_id == self._document_request:
            return
        self.finish(ExitCode.REDIRECTED)
        self.response = None
        self._interactive.clear()
        self.redirects.append(
            RedirectTrace(self.url, goal.text, RedirectSource.SCRIPT, permanent=False)
        )

    def _on_sent(self, event: cdp.RequestSent) -> None:
        self.activity.begin(event.request_id, event.type)
        if self.activity.requests > self._max_requests and not self._failed.is_set():
            detail = f"more than {self._max_requests:,} requests"
            self.failure = VisitFailed(ExitCode.BODY_TOO_LARGE, detail)
            self._failed.set()
        answer = event.redirect_response
        if answer is None or event.type != "Document" or not self._is_main(event.frame_id):
            return
        self._record(answer.url, answer.status, ExitCode.REDIRECTED)
        self.redirects.append(
            RedirectTrace(
                answer.url,
                event.request.url,
                RedirectSource.HTTP,
                permanent=answer.status in PERMANENT,
                request=len(self.requests) - 1,
            )
        )

    def _on_response(self, event: cdp.ResponseReceived) -> None:
        if event.type == "Document" and self._is_main(event.frame_id):
            self.response = event.response
            raw = self._raw_headers.pop(event.request_id, event.response.headers)
            self.headers = _lines(raw)

    def _on_headers(self, event: cdp.ResponseHeaders) -> None:
        if event.request_id != self._document_request:
            return
        self._raw_headers[event.request_id] = event.headers
        cookies = self._request.cookies
        lines = [value for name, value in _lines(event.headers) if name.lower() == "set-cookie"]
        if cookies is not None and lines:
            cookies.remember(self.url, lines)

    def _on_finished(self, event: cdp.LoadingFinished) -> None:
        self.activity.end(event.request_id, event.encoded_data_length)
        if event.request_id == self._document_request:
            self.wire_bytes = int(event.encoded_data_length)

    def _on_failed(self, event: cdp.LoadingFailed) -> None:
        self.activity.end(event.request_id, failed=not event.canceled)

    def _on_lifecycle(self, event: cdp.LifecycleEvent) -> None:
        if event.name == "DOMContentLoaded" and self._is_main(event.frame_id):
            self._interactive.set()
            self.activity.touch()

    def _on_navigated(self, event: cdp.FrameNavigated) -> None:
        if not event.frame.parent_id:
            self.activity.touch()

    def _on_moved(self, event: cdp.NavigatedWithinDocument) -> None:
        """Note a change of the URL by `history.pushState`; the document is the same."""
        if self._is_main(event.frame_id):
            self.activity.touch()

    def _on_download(self, event: cdp.DownloadWillBegin) -> None:
        self.download = event.url

    def _is_main(self, frame_id: str) -> bool:
        return frame_id == self.frame_id

    def _record(self, url: str, status: int, code: ExitCode) -> None:
        sent = self._sent.get(url)
        goal = parse_target(url, self._limits.url_bytes)
        clock = time.perf_counter()
        took = (clock - sent.clock) * 1000 if sent is not None else 0.0
        self.requests.append(
            RequestTrace(
                url,
                sent.at if sent is not None else datetime.now(UTC),
                code,
                sent.robots_approved if sent is not None else True,
                took,
                first_byte_ms=took,
                # No validators: a 304 would confirm the source, and not the text that scripts make.
                status=status,
                remote_address=self.traffic.addresses.get((goal.host.strip("[]"), goal.port)),
            )
        )


async def _navigated(navigation: "asyncio.Task[cdp.Navigated]") -> cdp.Navigated:
    try:
        return await navigation
    except CommandTimeout:
        raise VisitFailed(ExitCode.TOTAL_TIMEOUT) from None
    except ProtocolError as error:
        raise VisitFailed(ExitCode.PAGE_CRASHED, str(error)) from error


def _lines(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return one pair for each header line; the browser joins repeated ones by line feeds."""
    return tuple(
        (name, line) for name, value in headers.items() for line in value.split(_HEADER_LINES)
    )
