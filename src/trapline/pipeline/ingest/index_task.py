"""Task handlers of step eight, index: a file or a page version becomes passages with vectors.

No handler writes: `store_passages` stores its result in the transaction that finishes the task.
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
from trapline.knowledge.embedding.embedder import Embedder, EmbeddingModel, Vectors
from trapline.knowledge.embedding.embedders import STATIC, Embedders, default_config
from trapline.knowledge.passage_index import (
    IndexableText,
    IndexEntry,
    SourceGeneration,
    fingerprint,
    indexed_text,
    reusable_vectors,
)
from trapline.knowledge.source_config import IngestConfig, read_config
from trapline.knowledge.sql import sources as queries
from trapline.logs import get_logger
from trapline.measure import Recorder
from trapline.model import Document, Format, JobId, SourceId
from trapline.pipeline import document_formats
from trapline.pipeline.document_formats import HTML
from trapline.pipeline.ingest.external_parser import ExternalParser, ParserFailed, add_warning
from trapline.pipeline.kinds import FileTask, IndexTask
from trapline.pipeline.sql import page_lookup, sources
from trapline.pipeline.sql.sources import VersionTextRow
from trapline.queue.finish import TaskResult
from trapline.queue.retry_policy import Skip
from trapline.queue.tasks import Task
from trapline.settings import Settings
from trapline.store.blobs import BlobStore

log = get_logger(__name__)

T = TypeVar("T")

# Each file is in memory as a whole; two threads read the small ones.
_SMALL_AT_ONCE: Final = 12
_LARGE_AT_ONCE: Final = 1
_LONGEST_TITLE: Final = 1_000
_NO_TEXT: Final = "There is no text in it."


@dataclass(slots=True)
class PreparedText:
    """The result of a task: a text to be stored, or None if it has not changed."""

    payload: FileTask | IndexTask
    place: SourceGeneration
    text: IndexableText | None
    model: EmbeddingModel | None = None
    reused: int = 0
    """How many passages had a stored vector."""
    warning: str | None = None


@dataclass(slots=True)
class IndexTasks:
    """The handlers that make texts searchable."""

    database: Database
    settings: Settings
    blobs: BlobStore
    embedders: Embedders
    parser: ExternalParser
    recorder: Recorder
    _small: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_SMALL_AT_ONCE))
    _large: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LARGE_AT_ONCE))
    # Thread pools of their own: a slow file must not delay the small ones.
    _small_readers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(2, "small files")
    )
    _large_readers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_LARGE_AT_ONCE, "large files")
    )
    _chunkers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "passages"))

    async def index_file(self, task: Task) -> TaskResult:
        """Read a file and cut its text into passages with vectors."""
        payload: FileTask = task.payload
        if payload.error is not None:
            raise VisitFailed(ExitCode.EXTRACTION_FAILED, payload.error)
        large = payload.size >= self.settings.uploads.large_file_bytes
        async with self._room(large=large):
            place, config = await self._place(payload.source_id)
            document = await self._document(payload, large=large)
            if not document.markdown.strip():
                raise VisitFailed(ExitCode.EXTRACTION_FAILED, document.warning or _NO_TEXT)
            entry = _file_entry(payload, document)
            prepared = await self._prepare(task, place, config, entry, document.markdown)
            prepared.warning = document.warning
            return TaskResult(prepared)

    async def index_page(self, task: Task) -> TaskResult:
        """Cut the text of a page version into passages with vectors."""
        payload: IndexTask = task.payload
        place, config = await self._place(payload.source_id)
        async with self.database.system_tx() as conn:
            stored = await queries.entry_hash(conn, source_id=payload.source_id, uri=payload.url)
            if stored is not None and stored.version_id == payload.version_id:
                return TaskResult(PreparedText(payload, place, None))
            version = await sources.version_text(conn, version_id=payload.version_id)
        if version is None:
            raise Skip("The version of the page is gone.")
        parsed = await self._parse_externally(version)
        markdown = version.markdown if parsed is None else parsed.markdown
        entry = IndexEntry(
            uri=payload.url,
            path=urlsplit(payload.url).path,
            title=version.title,
            language=version.language,
            content_type=_media_type(version.content_type),
            page_id=payload.page_id,
            version_id=payload.version_id,
            content_hash=_hash(version.title, markdown),
            markdown=None if parsed is None else _clean(markdown),
            dated_at=_document_date(version.metadata) or version.fetched_at,
        )
        async with self._small:
            prepared = await self._prepare(task, place, config, entry, markdown)
        prepared.warning = None if parsed is None else parsed.warning
        return TaskResult(prepared)

    async def embed_text(
        self, place: SourceGeneration, config: IngestConfig, entry: IndexEntry, markdown: str
    ) -> tuple[IndexableText, EmbeddingModel]:
        """Cut one text into passages and embed them."""
        return (await self._embed(place, config, entry, markdown))[:2]

    def close(self) -> None:
        for threads in (self._small_readers, self._large_readers, self._chunkers):
            threads.shutdown(wait=False, cancel_futures=True)

    @asynccontextmanager
    async def _room(self, *, large: bool) -> AsyncIterator[None]:
        async with self._large if large else self._small:
            yield

    async def _place(self, source_id: SourceId) -> tuple[SourceGeneration, IngestConfig]:
        """Return where a source's texts go, and its config; Skip if the source was deleted."""
        async with self.database.system_tx() as conn:
            row = await queries.get_source(conn, source_id=source_id)
        if row is None:
            raise Skip("The source was deleted.")
        config = read_config(row.config, default_config(self.settings.embedding))
        return SourceGeneration(row.organisation_id, source_id, row.generation), config

    async def _document(self, payload: FileTask, *, large: bool) -> Document:
        async with self.database.system_tx() as conn:
            body = await self.blobs.get(conn, bytes.fromhex(payload.sha256))
        name = payload.name.rpartition("/")[2]
        content_type = payload.content_type or media_type(None, sniff(body))
        url = f"file:///{quote(name)}"
        readers = self._large_readers if large else self._small_readers
        own = partial(extract, body, content_type, url)
        try:
            document = await self._external(body, content_type, url)
        except ParserFailed as error:
            return add_warning(await _in(readers, own), str(error))
        return await _in(readers, own) if document is None else document

    async def _parse_externally(self, version: VersionTextRow) -> Document | None:
        """Send a file that a crawl fetched to the external parser; None if it does not take it.

        For search alone: the content of a version must not depend on the parser, or an outage of
        the parser would be a change of the page.
        """
        if not self.parser.kinds or _media_type(version.content_type) in HTML:
            return None
        async with self.database.system_tx() as conn:
            stored = await page_lookup.version_by_id(conn, version_id=version.version_id)
            if stored is None or stored.sha256 is None:
                return None
            body = await self.blobs.get(conn, stored.sha256)
        try:
            return await self._external(body, stored.content_type, stored.url)
        except ParserFailed as error:
            return add_warning(
                document_formats.stored_document(stored, frozenset({Format.MARKDOWN})), str(error)
            )

    async def _external(self, body: bytes, content_type: str | None, url: str) -> Document | None:
        """Send a file to the external parser; None if it does not take such files."""
        name = url.rpartition("/")[2]
        if not self.parser.accepts(body, content_type, name):
            return None
        try:
            return await self.parser.parse(body, content_type, url)
        except ParserFailed as error:
            log.warning("the external parser failed", name=name, error=str(error))
            raise

    async def _prepare(
        self,
        task: Task,
        place: SourceGeneration,
        config: IngestConfig,
        entry: IndexEntry,
        markdown: str,
    ) -> PreparedText:
        async with self.database.system_tx() as conn:
            stored = await queries.entry_hash(conn, source_id=place.source_id, uri=entry.uri)
        same = stored is not None and stored.content_hash == entry.content_hash
        if same and not entry.version_id:
            return PreparedText(task.payload, place, None)
        # The static model makes a vector faster than a query finds one.
        reuse = stored is not None or config.model != STATIC
        text, model, reused = await self._embed(
            place, config, entry, markdown, reuse=reuse, job_id=task.job_id
        )
        return PreparedText(task.payload, place, text, model, reused)

    async def _embed(  # noqa: PLR0913 (the text, its target and its job)
        self,
        place: SourceGeneration,
        config: IngestConfig,
        entry: IndexEntry,
        markdown: str,
        *,
        reuse: bool = True,
        job_id: JobId | None = None,
    ) -> tuple[IndexableText, EmbeddingModel, int]:
        clean = _clean(markdown)
        embedder = self.embedders.named(config.model)
        timer = partial(
            self.recorder.timed,
            organisation_id=place.organisation_id,
            job_id=job_id,
            document_url=entry.uri,
        )
        with timer("chunking", "passages") as extra:
            chunks = await _in(self._chunkers, lambda: list(passages(clean, config.size)))
            extra["passages"] = len(chunks)
        with timer("embedding", embedder.model.name) as extra:
            vectors, reused = await self._vectors(place, embedder, entry.title, chunks, reuse=reuse)
            extra["reused"] = reused
        return IndexableText(entry, chunks, vectors), embedder.model, reused

    async def _vectors(
        self,
        place: SourceGeneration,
        embedder: Embedder,
        title: str | None,
        chunks: list[Passage],
        *,
        reuse: bool,
    ) -> tuple[Vectors, int]:
        """Return the vectors of passages, embedding those that have none, and how many were reused."""
        if not reuse:
            return await embedder.embed([indexed_text(title, one) for one in chunks]), 0
        prints = [fingerprint(title, one) for one in chunks]
        async with self.database.system_tx() as conn:
            stored = await reusable_vectors(conn, place.organisation_id, embedder.model, prints)
        new = {p: one for p, one in zip(prints, chunks, strict=True) if p not in stored}
        embedded = await embedder.embed([indexed_text(title, one) for one in new.values()])
        rows = stored | dict(zip(new, embedded, strict=True))
        vectors = np.zeros((len(chunks), embedder.model.dimension), np.float32)
        for index, one in enumerate(prints):
            vectors[index] = rows[one]
        return vectors, len(chunks) - len(new)


def _file_entry(payload: FileTask, document: Document) -> IndexEntry:
    title = payload.title or document.metadata.title or payload.name.rpartition("/")[2]
    clean = _clean(title)[:_LONGEST_TITLE]
    return IndexEntry(
        uri=payload.uri,
        path="/" + payload.name.lstrip("/"),
        title=clean,
        language=document.language or document.metadata.language,
        content_type=_media_type(payload.content_type or document.content_type),
        content_hash=_hash(clean, document.markdown),
        markdown=_clean(document.markdown),
        dated_at=_parse_date(document.metadata.modified or document.metadata.published),
    )


def _hash(title: str | None, markdown: str) -> bytes:
    text = f"{title or ''}\x00{markdown}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _media_type(content_type: str | None) -> str | None:
    media = (content_type or "").partition(";")[0].strip().lower()
    return _clean(media) or None


def _clean(text: str) -> str:
    """Remove the null characters, which PostgreSQL does not store in text."""
    return text.replace("\x00", "")


def _document_date(metadata: object) -> datetime | None:
    if not isinstance(metadata, dict):
        return None
    return _parse_date(metadata.get("modified") or metadata.get("published"))


def _parse_date(value: str | None) -> datetime | None:
    """Parse the date of a document; None if it is not one."""
    try:
        moment = datetime.fromisoformat(value or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


async def _in(threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(threads, work)
