"""Step eight, index: bytes or a stored version become passages with vectors, ready to be stored.

Nothing here writes. What a handler returns is stored by `shelving` together with its task's end.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar
from urllib.parse import quote, urlsplit

import numpy as np

from trapline.db.pool import Database
from trapline.errors import ExitCode, VisitFailed
from trapline.extract import extract
from trapline.fetch.sniff import media_type, sniff
from trapline.knowledge.chunking import Passage, passages
from trapline.knowledge.config import IngestConfig, read_config
from trapline.knowledge.embedding.embedder import Embedder, Model, Vectors
from trapline.knowledge.embedding.embedders import STATIC, Embedders, default_config
from trapline.knowledge.indexing import (
    Entry,
    Indexable,
    Place,
    fingerprint,
    indexed_words,
    known_vectors,
)
from trapline.knowledge.sql import sources as queries
from trapline.logs import get_logger
from trapline.measure import Recorder
from trapline.model import Document, Format, JobId, SourceId
from trapline.pipeline import documents
from trapline.pipeline.documents import HTML
from trapline.pipeline.external_parser import ExternalParser, ParserFailed, with_warning
from trapline.pipeline.kinds import FileTask, IndexTask
from trapline.pipeline.sql import ingestion, known
from trapline.pipeline.sql.ingestion import VersionTextRow
from trapline.queue.finishing import Finished
from trapline.queue.retries import Skip
from trapline.queue.tasks import Task
from trapline.settings import Settings
from trapline.store.blobs import Blobs

log = get_logger(__name__)

T = TypeVar("T")

# Files that are read at the same time: each is in memory as a whole, and the readers are two.
_SMALL_AT_ONCE: Final = 12
_LARGE_AT_ONCE: Final = 1
_LONGEST_TITLE: Final = 1_000
_NO_TEXT: Final = "There is no text in it."


@dataclass(slots=True)
class Prepared:
    """A text on its way to be stored; without one, nothing of it has changed."""

    payload: FileTask | IndexTask
    place: Place
    text: Indexable | None
    model: Model | None = None
    reused: int = 0
    """Passages whose vectors were there."""
    warning: str | None = None


@dataclass(slots=True)
class Ingesting:
    """The handlers that make texts searchable, with what they need."""

    database: Database
    settings: Settings
    blobs: Blobs
    embedders: Embedders
    parser: ExternalParser | None = None
    _small: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_SMALL_AT_ONCE))
    _large: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LARGE_AT_ONCE))
    # Apart from the threads that others use: a slow file must not keep short ones waiting.
    _small_readers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(2, "small files")
    )
    _large_readers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_LARGE_AT_ONCE, "large files")
    )
    _cutters: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "passages"))
    recorder: Recorder = field(default_factory=Recorder)

    async def file(self, task: Task) -> Finished:
        """Read a file's bytes and make passages of its text."""
        payload: FileTask = task.payload
        if payload.error is not None:
            raise VisitFailed(ExitCode.EXTRACTION_FAILED, payload.error)
        large = payload.size >= self.settings.large_file_bytes
        async with self._room(large=large):
            place, config = await self._place(payload.source_id)
            document = await self._document(payload, large=large)
            if not document.markdown.strip():
                raise VisitFailed(ExitCode.EXTRACTION_FAILED, document.warning or _NO_TEXT)
            entry = _file_entry(payload, document)
            prepared = await self._prepared(task, place, config, entry, document.markdown)
            prepared.warning = document.warning
            return Finished(prepared)

    async def index(self, task: Task) -> Finished:
        """Make passages of a page's version."""
        payload: IndexTask = task.payload
        place, config = await self._place(payload.source_id)
        async with self.database.system_tx() as conn:
            there = await queries.entry_hash(conn, source_id=payload.source_id, uri=payload.url)
            if there is not None and there.version_id == payload.version_id:
                return Finished(Prepared(payload, place, None))
            version = await ingestion.version_text(conn, version_id=payload.version_id)
        if version is None:
            raise Skip("The version of the page is gone.")
        better = await self._read_again(version)
        markdown = version.markdown if better is None else better.markdown
        entry = Entry(
            uri=payload.url,
            path=urlsplit(payload.url).path,
            title=version.title,
            language=version.language,
            content_type=_media(version.content_type),
            page_id=payload.page_id,
            version_id=payload.version_id,
            content_hash=_hash(version.title, markdown),
            markdown=None if better is None else _clean(markdown),
            dated_at=_moment(version.metadata) or version.fetched_at,
        )
        async with self._small:
            prepared = await self._prepared(task, place, config, entry, markdown)
        prepared.warning = None if better is None else better.warning
        return Finished(prepared)

    async def text(
        self, organisation_place: Place, config: IngestConfig, entry: Entry, markdown: str
    ) -> tuple[Indexable, Model]:
        """Cut and embed one text."""
        return (await self._embedded(organisation_place, config, entry, markdown))[:2]

    def close(self) -> None:
        for threads in (self._small_readers, self._large_readers, self._cutters):
            threads.shutdown(wait=False, cancel_futures=True)

    # What a text is made of

    @asynccontextmanager
    async def _room(self, *, large: bool) -> AsyncIterator[None]:
        async with self._large if large else self._small:
            yield

    async def _place(self, source_id: SourceId) -> tuple[Place, IngestConfig]:
        """Return where a source's texts go and how they are made; a source that is gone has none."""
        async with self.database.system_tx() as conn:
            row = await queries.get_source(conn, source_id=source_id)
        if row is None:
            raise Skip("The source was deleted.")
        config = read_config(row.config, default_config(self.settings))
        return Place(row.organisation_id, source_id, row.generation), config

    async def _document(self, payload: FileTask, *, large: bool) -> Document:
        async with self.database.system_tx() as conn:
            body = await self.blobs.get(conn, bytes.fromhex(payload.sha256))
        name = payload.name.rpartition("/")[2]
        content_type = payload.content_type or media_type(None, sniff(body))
        url = f"file:///{quote(name)}"
        readers = self._large_readers if large else self._small_readers
        own = partial(extract, body, content_type, url)
        try:
            found = await self._external(body, content_type, url)
        except ParserFailed as error:
            return with_warning(await _in(readers, own), str(error))
        return await _in(readers, own) if found is None else found

    async def _read_again(self, version: VersionTextRow) -> Document | None:
        """Have a file that a crawl found read by the external parser, where there is one for it.

        For search alone: what a version says must not depend on whether a parser was there that day,
        or its absence would be a change of the page.
        """
        if self.parser is None or not self.parser.kinds or _media(version.content_type) in HTML:
            return None
        async with self.database.system_tx() as conn:
            stored = await known.version_by_id(conn, version_id=version.version_id)
            if stored is None or stored.sha256 is None:
                return None
            body = await self.blobs.get(conn, stored.sha256)
        try:
            return await self._external(body, stored.content_type, stored.url)
        except ParserFailed as error:
            return with_warning(
                documents.as_stored(stored, frozenset({Format.MARKDOWN})), str(error)
            )

    async def _external(self, body: bytes, content_type: str | None, url: str) -> Document | None:
        """Have a file read by the external parser; None if it is not asked about such files."""
        name = url.rpartition("/")[2]
        if self.parser is None or not self.parser.wants(body, content_type, name):
            return None
        try:
            return await self.parser.read(body, content_type, url)
        except ParserFailed as error:
            log.warning("the external parser failed", name=name, error=str(error))
            raise

    async def _prepared(
        self,
        task: Task,
        place: Place,
        config: IngestConfig,
        entry: Entry,
        markdown: str,
    ) -> Prepared:
        async with self.database.system_tx() as conn:
            there = await queries.entry_hash(conn, source_id=place.source_id, uri=entry.uri)
        if there is not None and there.content_hash == entry.content_hash and not entry.version_id:
            return Prepared(task.payload, place, None)
        again = there is not None or config.model != STATIC
        text, model, reused = await self._embedded(
            place, config, entry, markdown, look=again, job_id=task.job_id
        )
        return Prepared(task.payload, place, text, model, reused)

    async def _embedded(  # noqa: PLR0913 (where to, how, what of, for which job)
        self,
        place: Place,
        config: IngestConfig,
        entry: Entry,
        markdown: str,
        *,
        look: bool = True,
        job_id: JobId | None = None,
    ) -> tuple[Indexable, Model, int]:
        clean = _clean(markdown)
        embedder = self.embedders.named(config.model)
        timed = partial(
            self.recorder.timed,
            organisation_id=place.organisation_id,
            job_id=job_id,
            document_url=entry.uri,
        )
        with timed("chunking", "passages") as extra:
            cut = await _in(self._cutters, lambda: list(passages(clean, config.size)))
            extra["passages"] = len(cut)
        with timed("embedding", embedder.model.name) as extra:
            vectors, reused = await self._vectors(place, embedder, entry.title, cut, look=look)
            extra["reused"] = reused
        return Indexable(entry, cut, vectors), embedder.model, reused

    async def _vectors(
        self,
        place: Place,
        embedder: Embedder,
        title: str | None,
        cut: list[Passage],
        *,
        look: bool,
    ) -> tuple[Vectors, int]:
        """Embed passages, except those whose vectors are there already."""
        if not look:
            # The light model makes a vector faster than a table is asked for it.
            return await embedder.embed([indexed_words(title, one) for one in cut]), 0
        prints = [fingerprint(title, one) for one in cut]
        async with self.database.system_tx() as conn:
            there = await known_vectors(conn, place.organisation_id, embedder.model, prints)
        new = {p: one for p, one in zip(prints, cut, strict=True) if p not in there}
        made = await embedder.embed([indexed_words(title, one) for one in new.values()])
        rows = there | dict(zip(new, made, strict=True))
        vectors = np.zeros((len(cut), embedder.model.dimension), np.float32)
        for at, one in enumerate(prints):
            vectors[at] = rows[one]
        return vectors, len(cut) - len(new)


def _file_entry(payload: FileTask, document: Document) -> Entry:
    title = payload.title or document.metadata.title or payload.name.rpartition("/")[2]
    clean = _clean(title)[:_LONGEST_TITLE]
    return Entry(
        uri=payload.uri,
        path="/" + payload.name.lstrip("/"),
        title=clean,
        language=document.language or document.metadata.language,
        content_type=_media(payload.content_type or document.content_type),
        content_hash=_hash(clean, document.markdown),
        markdown=_clean(document.markdown),
        dated_at=_parsed(document.metadata.modified or document.metadata.published),
    )


def _hash(title: str | None, markdown: str) -> bytes:
    text = f"{title or ''}\x00{markdown}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _media(content_type: str | None) -> str | None:
    found = (content_type or "").partition(";")[0].strip().lower()
    return _clean(found) or None


def _clean(text: str) -> str:
    """Leave out what PostgreSQL takes in no text."""
    return text.replace("\x00", "")


def _moment(metadata: object) -> datetime | None:
    if not isinstance(metadata, dict):
        return None
    return _parsed(metadata.get("modified") or metadata.get("published"))


def _parsed(value: str | None) -> datetime | None:
    """Read a date of a document; one that is none says nothing."""
    try:
        moment = datetime.fromisoformat(value or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


async def _in(threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(threads, work)
