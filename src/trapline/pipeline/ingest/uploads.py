"""Uploads: each file is stored as a blob as it arrives, then all become sources of one job.

A file whose bytes the application has already is recognised by its hash, whatever its name; a file
with a known URI and other bytes updates its source.
"""

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import TooLarge, TraplineError
from trapline.extract.files.kinds import Kind, kind_of
from trapline.knowledge import progress_counters, sources
from trapline.knowledge.progress_counters import CounterChange
from trapline.knowledge.source_config import IngestConfig
from trapline.knowledge.sources import LONGEST_URI
from trapline.knowledge.sql import sources as queries
from trapline.model import ApplicationId, JobId, MemberId, OrganisationId, SourceId
from trapline.pipeline.kinds import FILE, INGEST, FileTask, ingest_kinds
from trapline.pipeline.sql import sources as upload_queries
from trapline.queue import jobs
from trapline.queue.gates import Gate
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.tasks import NewTask
from trapline.settings import Settings, UploadSettings
from trapline.store.blobs import BlobStore
from trapline.store.upload_spool import IN_MEMORY, UploadSpool

_SMALL: Final = Gate("kind:file")
_LARGE: Final = Gate("kind:file large", bound=4)
_LARGE_TIMEOUT: Final = timedelta(minutes=30)
# The bounds of a batch of small files.
_BATCH_FILES: Final = 100
_BATCH_BYTES: Final = 8 * 2**20
_ZIP: Final = b"PK"
_LONGEST_NAME: Final = 300


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file whose bytes are stored."""

    name: str
    uri: str
    sha256: bytes
    size: int
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A file that was not accepted, and why."""

    name: str
    error: str


@dataclass(slots=True)
class UploadCollector:
    """Stores the files of an upload one after the other, in bounded memory."""

    database: Database
    blobs: BlobStore
    settings: UploadSettings
    files: list[NewFile] = field(default_factory=list)
    rejected: list[RejectedFile] = field(default_factory=list)
    _pending: list[UploadSpool] = field(default_factory=list)
    _bytes: int = 0

    async def add(
        self,
        name: str,
        pieces: AsyncIterator[bytes],
        *,
        content_type: str | None = None,
        uri: str | None = None,
    ) -> None:
        """Store one file; a rejected file is noted, and its bytes are read to their end."""
        if len(self.files) + len(self.rejected) >= self.settings.files:
            raise TooLarge(f"There are more than {self.settings.files:,} files.")
        clean = clean_name(name)
        spool = UploadSpool(self.settings.file_bytes)
        error: str | None = None
        try:
            async for piece in pieces:
                if error is None:
                    error = _write_piece(spool, piece)
            error = error or _defect(spool, content_type, clean)
        except OSError as failure:
            error = failure.strerror or str(failure)
        except BaseException:
            spool.close()
            raise
        if error is not None:
            spool.close()
            self.rejected.append(RejectedFile(clean, error))
            return
        spool.finish()
        self.files.append(
            NewFile(
                clean,
                (uri or f"upload:/{spool.sha256.hex()[:16]}/{clean}")[:LONGEST_URI],
                spool.sha256,
                spool.size,
                _media_type(content_type),
            )
        )
        self._pending.append(spool)
        self._bytes += spool.compressed_size
        if (
            len(self._pending) >= _BATCH_FILES
            or self._bytes >= _BATCH_BYTES
            or spool.compressed_size >= IN_MEMORY
        ):
            await self.flush()

    async def flush(self) -> None:
        """Store the files that are still in memory or in temporary files."""
        pending, self._pending, self._bytes = self._pending, [], 0
        try:
            if pending:
                async with self.database.system_tx() as conn:
                    await self.blobs.put_spooled(conn, pending)
        finally:
            for spool in pending:
                spool.close()

    def close(self) -> None:
        for spool in self._pending:
            spool.close()


def _write_piece(spool: UploadSpool, piece: bytes) -> str | None:
    try:
        spool.write(piece)
    except TraplineError as error:
        return error.message
    return None


def _defect(spool: UploadSpool, content_type: str | None, name: str) -> str | None:
    """Return what is wrong with a file by its size and first bytes; None if nothing is."""
    if not spool.size:
        return "The file is empty."
    if spool.head.startswith(_ZIP):
        return None  # The kind of an archive is known at its end only.
    kind = kind_of(spool.head, content_type, name)
    return "Its type is not known." if kind is Kind.UNKNOWN else None


def clean_name(name: str) -> str:
    """Return a safe relative path made of a sender's file name."""
    parts = name.replace("\\", "/").split("/")
    kept = ["".join(c for c in part if c.isprintable()).strip() for part in parts]
    clean = "/".join(part for part in kept if part and part not in {".", ".."})
    return clean[-_LONGEST_NAME:].lstrip("/") or "unnamed"


def _media_type(content_type: str | None) -> str | None:
    """Return the sender's content type; None if it says nothing."""
    clean = "".join(c for c in content_type or "" if c.isprintable())[:200].strip()
    return None if clean.lower() in {"", "application/octet-stream"} else clean


@dataclass(frozen=True, slots=True)
class UploadOwner:
    """The owner of uploaded files, and the config to index them with."""

    organisation_id: OrganisationId
    config: IngestConfig
    application_id: ApplicationId | None = None
    member_id: MemberId | None = None


@dataclass(frozen=True, slots=True)
class AcceptedFile:
    """A file that was queued, or recognised as one that is there."""

    file: NewFile
    source_id: SourceId
    recognised: bool


@dataclass(frozen=True, slots=True)
class RegisteredUpload:
    """The files of an upload; without a new one there is no job."""

    files: list[AcceptedFile]
    job_id: JobId | None

    @property
    def queued(self) -> int:
        return sum(not one.recognised for one in self.files)


async def register(
    conn: Connection, owner: UploadOwner, files: Sequence[NewFile], settings: Settings
) -> RegisteredUpload:
    """Create or update the sources of files, and one job that indexes them, all or none."""
    await queries.lock_source_key(conn, key=f"{owner.organisation_id} {owner.application_id}")
    plan = _UploadPlan(jobs.new_id())
    rows = await upload_queries.existing_files(
        conn,
        organisation_id=owner.organisation_id,
        application_id=owner.application_id,
        hashes=[one.sha256 for one in files],
        uri_digests=[_digest(one.uri) for one in files],
    )
    for row in rows:
        failed = row.status in {"failed", "cancelled"}
        abandoned = row.status == "pending" and not row.open
        plan.learn(row.uri, row.sha256, row.source_id, retry=failed or abandoned)
    for file in files:
        plan.add(file)
    await _write_plan(conn, owner, plan, settings)
    return RegisteredUpload(plan.accepted, plan.job_id if plan.added or plan.updated else None)


@dataclass(slots=True)
class _UploadPlan:
    """Decides whether each file is new, updates a source, or is there already."""

    job_id: JobId
    accepted: list[AcceptedFile] = field(default_factory=list)
    added: dict[SourceId, NewFile] = field(default_factory=dict)
    updated: dict[SourceId, NewFile] = field(default_factory=dict)
    _by_uri: dict[str, tuple[bytes, SourceId]] = field(default_factory=dict)
    _by_hash: dict[bytes, SourceId] = field(default_factory=dict)
    _retried: set[SourceId] = field(default_factory=set)

    def learn(self, uri: str, sha256: bytes, source_id: SourceId, *, retry: bool) -> None:
        self._by_uri.setdefault(uri, (sha256, source_id))
        self._by_hash.setdefault(sha256, source_id)
        if retry:
            self._retried.add(source_id)

    def add(self, new: NewFile) -> None:
        same_uri = self._by_uri.get(new.uri)
        if same_uri is not None and same_uri[0] != new.sha256:
            return self._update(same_uri[1], new)
        source_id = same_uri[1] if same_uri is not None else self._by_hash.get(new.sha256)
        if source_id is None:
            source_id = sources.new_id()
            self.added[source_id] = new
            self.learn(new.uri, new.sha256, source_id, retry=False)
            self.accepted.append(AcceptedFile(new, source_id, recognised=False))
        elif source_id in self._retried:
            self._update(source_id, new)
        else:
            self.accepted.append(AcceptedFile(new, source_id, recognised=True))
        return None

    def _update(self, source_id: SourceId, new: NewFile) -> None:
        target = self.added if source_id in self.added else self.updated
        target[source_id] = new
        self._by_uri[new.uri] = (new.sha256, source_id)
        self._retried.discard(source_id)
        self.accepted.append(AcceptedFile(new, source_id, recognised=False))


async def _write_plan(
    conn: Connection, owner: UploadOwner, plan: _UploadPlan, settings: Settings
) -> None:
    files = plan.added | plan.updated
    if not files:
        return
    await _write_sources(conn, owner, plan)
    ttl, _ = jobs.retention_times(settings.retention)
    application_id = owner.application_id
    job = NewJob(
        INGEST,
        owner.organisation_id,
        id=plan.job_id,
        member_id=owner.member_id,
        options={"embedding_config": msgspec.to_builtins(owner.config)},
        metadata={} if application_id is None else {"application_id": str(application_id)},
        ttl=ttl,
    )
    tasks = [_task(owner, source_id, file, settings) for source_id, file in files.items()]
    await jobs.submit(conn, Kinds(ingest_kinds()), job, tasks, now=datetime.now(UTC))
    if application_id is not None:
        created_at = (await jobs.get(conn, job.id)).created_at
        change = CounterChange(
            owner.organisation_id, application_id, job.id, created_at, total=len(files)
        )
        await progress_counters.add(conn, [change])


async def _write_sources(conn: Connection, owner: UploadOwner, plan: _UploadPlan) -> None:
    await queries.add_files(
        conn,
        organisation_id=owner.organisation_id,
        application_id=owner.application_id,
        config=msgspec.to_builtins(owner.config),
        job_id=plan.job_id,
        created_by=owner.member_id,
        ids=list(plan.added),
        names=[file.name for file in plan.added.values()],
        uris=[file.uri for file in plan.added.values()],
        hashes=[file.sha256 for file in plan.added.values()],
        sizes=[file.size for file in plan.added.values()],
        content_types=[file.content_type for file in plan.added.values()],
    )
    await queries.update_files(
        conn,
        job_id=plan.job_id,
        ids=list(plan.updated),
        hashes=[file.sha256 for file in plan.updated.values()],
        sizes=[file.size for file in plan.updated.values()],
        content_types=[file.content_type for file in plan.updated.values()],
    )


def _task(owner: UploadOwner, source_id: SourceId, new: NewFile, settings: Settings) -> NewTask:
    large = new.size >= settings.uploads.large_file_bytes
    payload = FileTask(
        source_id=source_id,
        uri=new.uri,
        name=new.name,
        sha256=new.sha256.hex(),
        size=new.size,
        application_id=owner.application_id,
        content_type=new.content_type,
    )
    gate, timeout = (_LARGE, _LARGE_TIMEOUT) if large else (_SMALL, None)
    return NewTask(FILE, payload, gate=gate, timeout=timeout)


def _digest(uri: str) -> str:
    return hashlib.md5(uri.encode(), usedforsecurity=False).hexdigest()
