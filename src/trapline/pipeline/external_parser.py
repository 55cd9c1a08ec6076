"""An external parser for the kinds of files that it reads better than we do, such as scanned PDFs.

A file is posted to it as a form with one part, `file`. It may answer with Markdown, plain text or
HTML, or with JSON that holds Markdown under a name that such services use. Whatever goes wrong, the
file is read by our own parser, with a warning: an external one makes files better, never fewer.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import msgspec

from trapline.errors import SettingsError
from trapline.extract import extract
from trapline.extract.documents.kinds import Kind, kind_of
from trapline.fetch.headers import retry_after
from trapline.logs import get_logger
from trapline.model import Document, Metadata, PageType
from trapline.settings import Settings

log = get_logger(__name__)

_ATTEMPTS: Final = 2
_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 10.0
_OK: Final = 200
_SHOWN: Final = 200
# Where services put a text, in their own words; the first that is there counts.
_PLACES: Final = (
    ("markdown",),
    ("md_content",),
    ("page_content",),
    ("text",),
    ("content",),
    ("data", "markdown"),
    ("document", "md_content"),
    ("document", "markdown"),
    ("result", "markdown"),
)


class ParserFailed(Exception):
    """The external parser gave nothing that can be used; the message says why."""

    def __init__(self, why: str, *, pause: float | None = None) -> None:
        super().__init__(why)
        self.pause = pause


@dataclass(slots=True)
class ExternalParser:
    """One client of the parser, for a whole process. Make it inside the running loop."""

    settings: Settings
    kinds: frozenset[Kind] = frozenset()
    _session: aiohttp.ClientSession | None = None
    _places: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.settings.parser_concurrency)
        if self.settings.parser_url is not None:
            self.kinds = frozenset(map(_kind, self.settings.parser_types))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def wants(self, body: bytes, content_type: str | None, name: str) -> bool:
        """Tell whether a file is of a kind that the parser is asked about."""
        if not self.kinds or len(body) > self.settings.parser_bytes:
            return False
        return kind_of(body, content_type, name) in self.kinds

    async def read(self, body: bytes, content_type: str | None, url: str) -> Document:
        """Have a file read; ParserFailed when nothing usable comes."""
        name = url.rpartition("/")[2]
        async with self._places:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    kind, answer = await self._ask(body, content_type, name)
                    return await asyncio.to_thread(_document, answer, kind, content_type, url)
                except ParserFailed as error:
                    if error.pause is None or attempt == _ATTEMPTS:
                        raise
                    await asyncio.sleep(min(error.pause, _LONGEST_PAUSE))
        raise AssertionError

    async def _ask(self, body: bytes, content_type: str | None, name: str) -> tuple[str, bytes]:
        """Ask once; return the media type of the answer with its bytes."""
        form = aiohttp.FormData()
        media = (content_type or "").partition(";")[0].strip() or "application/octet-stream"
        try:
            form.add_field("file", body, filename=name, content_type=media)
            async with self._client().post(
                self.settings.parser_url or "", data=form, allow_redirects=False
            ) as answer:
                text = await self._bounded(answer)
                if answer.status != _OK:
                    said = text[:_SHOWN].decode("utf-8", "replace")
                    wait = retry_after(answer.headers.get("Retry-After"), datetime.now(UTC))
                    raise ParserFailed(
                        f"it answered {answer.status}: {said}",
                        pause=(wait or _PAUSE) if answer.status in _AGAIN else None,
                    )
                return answer.content_type, text
        except TimeoutError:
            seconds = self.settings.parser_timeout
            raise ParserFailed(f"it did not answer within {seconds:g} seconds") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ParserFailed(f"it cannot be asked: {error}", pause=_PAUSE) from None

    async def _bounded(self, answer: aiohttp.ClientResponse) -> bytes:
        text = bytearray()
        async for part in answer.content.iter_any():
            text += part
            if len(text) > self.settings.parser_answer_bytes:
                most = self.settings.parser_answer_bytes
                raise ParserFailed(f"its answer has more than {most:,} bytes")
        return bytes(text)

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            key = self.settings.parser_key
            headers = {"Accept": "application/json, text/markdown, text/html, text/plain"}
            if key is not None:
                headers["Authorization"] = f"Bearer {key.get_secret_value()}"
            # Whoever runs this chose the address: it may be a private one.
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self.settings.parser_timeout),
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def with_warning(document: Document, why: str) -> Document:
    """Say beside what our own parser read why the other one did not."""
    said = f"The external parser was of no use ({why}); the file was read without it."
    return msgspec.structs.replace(
        document, warning=f"{said} {document.warning}" if document.warning else said
    )


def _document(answer: bytes, kind: str, content_type: str | None, url: str) -> Document:
    reader = _READERS.get(kind)
    if reader is None:
        raise ParserFailed(f"it answered with {kind}, which is no text")
    markdown, title = reader(answer, url)
    if not markdown.strip():
        raise ParserFailed("there was no text in its answer")
    return Document(
        url,
        content_type,
        PageType.DOCUMENT,
        text=markdown,
        markdown=markdown,
        metadata=Metadata(title=title),
    )


def _plain(answer: bytes, url: str) -> tuple[str, str | None]:
    del url
    try:
        return answer.decode("utf-8-sig"), None
    except UnicodeDecodeError:
        raise ParserFailed("its answer is not UTF-8") from None


def _html(answer: bytes, url: str) -> tuple[str, str | None]:
    page = extract(answer, "text/html; charset=utf-8", url)
    return page.markdown, page.metadata.title


def _json(answer: bytes, url: str) -> tuple[str, str | None]:
    del url
    try:
        found = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParserFailed(f"its answer is not JSON: {error}") from None
    parts = found if isinstance(found, list) else [found]
    texts = [text for part in parts if (text := _text_in(part)) is not None]
    if not texts:
        raise ParserFailed("its JSON holds no text under a name that is known")
    return "\n\n".join(texts), _title(parts[0])


def _text_in(part: Any) -> str | None:
    for place in _PLACES:
        value = part
        for name in place:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value
    return None


def _title(part: Any) -> str | None:
    """The title that an answer gives, beside its text or in its metadata."""
    data = part.get("data") if isinstance(part, dict) else None
    for holder in (part, data):
        about = holder.get("metadata") if isinstance(holder, dict) else None
        title = about.get("title") if isinstance(about, dict) else None
        if isinstance(title, str) and title.strip():
            return title.strip()
    return None


_READERS: Final[dict[str, Callable[[bytes, str], tuple[str, str | None]]]] = {
    "application/json": _json,
    "text/markdown": _plain,
    "text/x-markdown": _plain,
    "text/plain": _plain,
    "text/html": _html,
}


def _kind(word: str) -> Kind:
    try:
        kind = Kind(word.lower())
    except ValueError:
        known = ", ".join(one.value for one in Kind if one not in {Kind.EMPTY, Kind.UNKNOWN})
        raise SettingsError(f"TRAPLINE_PARSER_TYPES: {word!r} is none of {known}.") from None
    return kind
