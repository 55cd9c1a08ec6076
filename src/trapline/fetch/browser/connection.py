"""DevTools protocol client: typed commands with a deadline each, and events, by session."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

COMMAND_SECONDS: Final = 10.0

R = TypeVar("R")
E = TypeVar("E", bound="Event")


class ProtocolError(Exception):
    """The browser refused a command."""


class Disconnected(ProtocolError):
    """The browser, or the tab that a command was for, is gone."""


class CommandTimeout(ProtocolError):
    """The browser did not answer a command in time."""


class Empty(Struct, frozen=True):
    """The result of a command that returns nothing."""


class Command(Struct, Generic[R], frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A command: its fields are the parameters, `result` is the type of its answer."""

    method: ClassVar[str]
    result: ClassVar[Any] = Empty


class Event(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event: only the fields that we read are decoded."""

    method: ClassVar[str]


class _Error(Struct, frozen=True):
    message: str = ""
    data: str = ""


class _Message(Struct, frozen=True, rename={"session_id": "sessionId"}):
    id: int | None = None
    method: str = ""
    session_id: str = ""
    result: Raw = Raw(b"{}")
    params: Raw = Raw(b"{}")
    error: _Error | None = None


class _Request(Struct, frozen=True, omit_defaults=True, rename={"session_id": "sessionId"}):
    id: int
    method: str
    params: Command[Any]
    session_id: str = ""


class Transport(Protocol):
    """Carries messages to a browser; it calls `Connection.receive` and `Connection.lost`."""

    def send(self, message: bytes) -> None: ...

    def close(self) -> None: ...


class _Pending(Struct):
    future: "asyncio.Future[Raw]"
    session_id: str


class Connection:
    """All sessions of one browser. Commands that it leaves unanswered when it dies fail at once."""

    def __init__(self) -> None:
        self.transport: Transport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.browser = Session(self, "")
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(_Message)
        self._number = 0
        self._pending: dict[int, _Pending] = {}
        self._sessions = {"": self.browser}

    def attach(self, session_id: str) -> "Session":
        session = self._sessions[session_id] = Session(self, session_id)
        return session

    def detach(self, session_id: str) -> None:
        """Forget a session and fail its unanswered commands."""
        self._sessions.pop(session_id, None)
        self._fail(lambda pending: pending.session_id == session_id)

    def abandon(self, session_id: str) -> None:
        """Fail the unanswered commands of a session whose renderer has died."""
        self._fail(lambda pending: pending.session_id == session_id)

    async def call(self, session_id: str, command: Command[R], seconds: float) -> R:
        if self.transport is None or self.closed.done():
            raise Disconnected(command.method)
        self._number += 1
        number = self._number
        future = asyncio.get_running_loop().create_future()
        self._pending[number] = _Pending(future, session_id)
        self.transport.send(
            self._encoder.encode(_Request(number, command.method, command, session_id))
        )
        try:
            async with asyncio.timeout(seconds):
                raw = await future
        except TimeoutError:
            raise CommandTimeout(f"{command.method} took longer than {seconds:g} s") from None
        finally:
            self._pending.pop(number, None)
        result: R = msgspec.json.decode(raw, type=command.result)
        return result

    def receive(self, data: bytes) -> None:
        """Handle one message of the browser."""
        message = self._decoder.decode(data)
        if message.id is None:
            session = self._sessions.get(message.session_id)
            if session is not None:
                session.dispatch(message.method, message.params)
            return
        pending = self._pending.pop(message.id, None)
        if pending is None or pending.future.done():
            return
        if message.error is not None:
            text = f"{message.error.message} {message.error.data}".strip()
            pending.future.set_exception(ProtocolError(text))
        else:
            pending.future.set_result(message.result)

    def lost(self) -> None:
        """Fail everything that is pending: the browser is gone."""
        if not self.closed.done():
            self.closed.set_result(None)
        self._fail(lambda _: True)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()
        self.lost()

    def _fail(self, matches: Callable[[_Pending], bool]) -> None:
        for pending in [each for each in self._pending.values() if matches(each)]:
            if not pending.future.done():
                pending.future.set_exception(Disconnected("the tab or the browser is gone"))


class Session:
    """One target of the browser, such as a tab; the one without an id is the browser itself."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self.id = session_id
        self.connection = connection
        self._handlers: dict[str, tuple[type[Event], Callable[[Any], None]]] = {}

    async def call(self, command: Command[R], seconds: float = COMMAND_SECONDS) -> R:
        """Send a command and wait for its answer, at most so many seconds."""
        return await self.connection.call(self.id, command, seconds)

    def on(self, event: type[E], handler: Callable[[E], None]) -> None:
        """Call the handler for each such event; there is one handler for a type."""
        self._handlers[event.method] = (event, handler)

    def dispatch(self, method: str, params: Raw) -> None:
        entry = self._handlers.get(method)
        if entry is not None:
            kind, handler = entry
            handler(msgspec.json.decode(params, type=kind))
