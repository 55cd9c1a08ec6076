"""HTTP client of an external document parser, for file types that it reads better than we do.

The client posts a file, such as a scanned PDF, as a form with one part, `file`. The parser answers
with Markdown, plain text or HTML, or with JSON that holds Markdown under one of the usual keys. If
anything fails, our own parser reads the file and the document carries a warning: an external parser
improves files and never loses one.
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
from trapline.extract.files.kinds import Kind, kind_of
from trapline.fetch.headers import retry_after
from trapline.model import Document, Metadata, PageType
from trapline.settings import ParserSettings

_ATTEMPTS: Final = 2
_RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})
_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 10.0
_OK: Final = 200
_EXCERPT: Final = 200
# The keys under which services return a text; the first one that exists counts.
_TEXT_PATHS: Final = (
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
    """The external parser returned nothing usable; the message says why."""

    def __init__(self, why: str, *, pause: float | None = None) -> None:
        super().__init__(why)
        self.pause = pause


@dataclass(slots=True)
class ExternalParser:
    """The client, one for a process; construct it inside the running event loop."""

    settings: ParserSettings
    kinds: frozenset[Kind] = frozenset()
    _session: aiohttp.ClientSession | None = None
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.settings.concurrency)
        if self.settings.url is not None:
            self.kinds = frozenset(map(_parse_kind, self.settings.types))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def accepts(self, body: bytes, content_type: str | None, name: str) -> bool:
        """Tell whether the parser is configured for this kind and size of file."""
        if not self.kinds or len(body) > self.settings.file_bytes:
            return False
        return kind_of(body, content_type, name) in self.kinds

    async def parse(self, body: bytes, content_type: str | None, url: str) -> Document:
        """Send a file to the parser, with one retry; ParserFailed if the answer is not usable."""
        name = url.rpartition("/")[2]
        async with self._slots:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    media, answer = await self._post(body, content_type, name)
                    return await asyncio.to_thread(_document, answer, media, content_type, url)
                except ParserFailed as error:
                    if error.pause is None or attempt == _ATTEMPTS:
                        raise
                    await asyncio.sleep(min(error.pause, _LONGEST_PAUSE))
        raise AssertionError

    async def _post(self, body: bytes, content_type: str | None, name: str) -> tuple[str, bytes]:
        """Send one request; return the media type of the answer and its bytes."""
        form = aiohttp.FormData()
        media = (content_type or "").partition(";")[0].strip() or "application/octet-stream"
        try:
            form.add_field("file", body, filename=name, content_type=media)
            async with self._http().post(
                self.settings.url or "", data=form, allow_redirects=False
            ) as answer:
                text = await self._read_bounded(answer)
                if answer.status != _OK:
                    excerpt = text[:_EXCERPT].decode("utf-8", "replace")
                    wait = retry_after(answer.headers.get("Retry-After"), datetime.now(UTC))
                    raise ParserFailed(
                        f"it answered {answer.status}: {excerpt}",
                        pause=(wait or _PAUSE) if answer.status in _RETRIED else None,
                    )
                return answer.content_type, text
        except TimeoutError:
            seconds = self.settings.timeout
            raise ParserFailed(f"it did not answer within {seconds:g} seconds") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ParserFailed(f"it cannot be reached: {error}", pause=_PAUSE) from None

    async def _read_bounded(self, answer: aiohttp.ClientResponse) -> bytes:
        text = bytearray()
        async for part in answer.content.iter_any():
            text += part
            if len(text) > self.settings.answer_bytes:
                limit = self.settings.answer_bytes
                raise ParserFailed(f"its answer has more than {limit:,} bytes")
        return bytes(text)

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            key = self.settings.key
            headers = {"Accept": "application/json, text/markdown, text/html, text/plain"}
            if key is not None:
                headers["Authorization"] = f"Bearer {key.get_secret_value()}"
            # The operator chose the address: it may be a private one.
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self.settings.timeout),
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def add_warning(document: Document, why: str) -> Document:
    """Add to a document of our own parser why the external parser did not read it."""
    warning = f"The external parser was of no use ({why}); the file was read without it."
    return msgspec.structs.replace(
        document, warning=f"{warning} {document.warning}" if document.warning else warning
    )


def _document(answer: bytes, media: str, content_type: str | None, url: str) -> Document:
    reader = _READERS.get(media)
    if reader is None:
        raise ParserFailed(f"it answered with {media}, which is no text")
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
        decoded = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParserFailed(f"its answer is not JSON: {error}") from None
    parts = decoded if isinstance(decoded, list) else [decoded]
    texts = [text for part in parts if (text := _text_in(part)) is not None]
    if not texts:
        raise ParserFailed("its JSON has no text under a known key")
    return "\n\n".join(texts), _title(parts[0])


def _text_in(part: Any) -> str | None:
    for path in _TEXT_PATHS:
        value = part
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value
    return None


def _title(part: Any) -> str | None:
    """Return the title in the metadata of an answer."""
    data = part.get("data") if isinstance(part, dict) else None
    for holder in (part, data):
        metadata = holder.get("metadata") if isinstance(holder, dict) else None
        title = metadata.get("title") if isinstance(metadata, dict) else None
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


def _parse_kind(name: str) -> Kind:
    try:
        return Kind(name.lower())
    except ValueError:
        known = ", ".join(one.value for one in Kind if one not in {Kind.EMPTY, Kind.UNKNOWN})
        raise SettingsError(f"TRAPLINE_PARSER_TYPES: {name!r} is none of {known}.") from None
