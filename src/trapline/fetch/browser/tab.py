"""One tab of a browser context: set up once, configured for a page, used for many."""

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trapline.fetch.browser import commands as cdp
from trapline.fetch.browser.connection import Command, CommandTimeout, ProtocolError, Session
from trapline.fetch.browser.readiness import OBSERVER, WORLD

if TYPE_CHECKING:
    from trapline.fetch.browser.pool import BrowserContext

_INTERRUPT_SECONDS: Final = 1.0
_NO_SERVICE_WORKERS: Final = (
    "if (navigator.serviceWorker) navigator.serviceWorker.register ="
    " () => Promise.reject(new DOMException('Service workers are off', 'SecurityError'))"
)
_DOCUMENTS: Final = [cdp.RequestPattern("*", "Document")]


class ScriptFailed(ProtocolError):
    """A script of ours or of an action threw."""


class TabConfig(msgspec.Struct, frozen=True):
    """What a tab shows to pages; sent only where it differs from the page before."""

    user_agent: str
    accept_language: str
    width: int
    height: int
    mobile: bool
    headers: tuple[tuple[str, str], ...]
    blocked: tuple[str, ...]
    verify_tls: bool
    timezone: str
    position: tuple[float, float] | None


class Tab:
    """A target of the browser with its session. `broken` tabs are not used again."""

    def __init__(self, context: "BrowserContext", target_id: str, session: Session) -> None:
        self.context = context
        self.target_id = target_id
        self.session = session
        self.pages = 0
        self.broken = False
        self.crashed = asyncio.Event()
        self._config: TabConfig | None = None

    async def set_up(self) -> None:
        session = self.session
        session.on(cdp.TargetCrashed, self._on_crash)
        session.on(cdp.DialogOpening, self._on_dialog)
        await self._all(
            cdp.EnablePage(),
            cdp.SetLifecycleEvents(enabled=True),
            cdp.EnableNetwork(),
            cdp.BypassServiceWorker(bypass=True),
            cdp.EnableFetch(patterns=_DOCUMENTS),
            cdp.AddScript(source=OBSERVER, world_name=WORLD),
            cdp.AddScript(source=_NO_SERVICE_WORKERS),
        )

    async def configure(self, config: TabConfig) -> None:
        """Apply what differs from the page before."""
        before, self._config = self._config, config
        if before == config:
            return
        await self._all(
            cdp.SetUserAgent(user_agent=config.user_agent, accept_language=config.accept_language),
            cdp.SetDeviceMetrics(
                width=config.width,
                height=config.height,
                device_scale_factor=1.0,
                mobile=config.mobile,
            ),
            cdp.SetTouch(enabled=config.mobile),
            cdp.SetExtraHeaders(headers=dict(config.headers)),
            cdp.SetBlockedUrls(urls=list(config.blocked)),
            cdp.IgnoreCertificateErrors(ignore=not config.verify_tls),
            cdp.SetTimezone(timezone_id=config.timezone),
        )
        if config.position is not None:
            await self._locate(*config.position)

    async def evaluate(
        self, expression: str, *, seconds: float = 5.0, frame_id: str | None = None
    ) -> Any:
        """Evaluate an expression and return its value: in our own world of a frame, else in the page."""
        context = None
        if frame_id is not None:
            world = await self.session.call(
                cdp.CreateIsolatedWorld(frame_id=frame_id, world_name=WORLD), seconds
            )
            context = world.execution_context_id
        done = await self.session.call(
            cdp.Evaluate(
                expression=expression,
                context_id=context,
                return_by_value=True,
                await_promise=True,
                user_gesture=True,
            ),
            seconds,
        )
        if done.exception_details is not None:
            details = done.exception_details
            text = details.exception.description if details.exception else details.text
            raise ScriptFailed(text.splitlines()[0] if text else "the script failed")
        return done.result.value

    async def interrupt(self) -> None:
        """Stop the scripts of the page; a tab that does not obey is broken."""
        try:
            await self.session.call(cdp.TerminateExecution(), _INTERRUPT_SECONDS)
        except CommandTimeout:
            self.broken = True
        except ProtocolError:
            pass

    async def _locate(self, latitude: float, longitude: float) -> None:
        connection = self.session.connection
        await connection.browser.call(
            cdp.GrantPermissions(permissions=["geolocation"], browser_context_id=self.context.id)
        )
        await self.session.call(
            cdp.SetGeolocation(latitude=latitude, longitude=longitude, accuracy=1000)
        )

    async def _all(self, *commands: Command[Any]) -> None:
        await asyncio.gather(*(self.session.call(command) for command in commands))

    def _on_crash(self, _: cdp.TargetCrashed) -> None:
        # The browser never answers the commands that were pending.
        self.broken = True
        self.crashed.set()
        self.session.connection.abandon(self.session.id)

    def _on_dialog(self, event: cdp.DialogOpening) -> None:
        accept = event.type == "beforeunload"
        self.context.spawn(self.session.call(cdp.HandleDialog(accept=accept)))
