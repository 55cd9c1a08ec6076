"""Files on their way in: each to the blobs as it comes, then all of them to sources and one job.

A file whose bytes an application has already is recognised and not read again, whatever it is
called now; one that comes from the same place with other bytes renews its source.
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
from trapline.extract.documents.kinds import Kind, kind_of
from trapline.knowledge import sources, tally
from trapline.knowledge.config import IngestConfig
from trapline.knowledge.sources import LONGEST_URI
from trapline.knowledge.sql import sources as queries
from trapline.knowledge.tally import Change
from trapline.model import ApplicationId, JobId, MemberId, OrganisationId, SourceId
from trapline.pipeline.kinds import FILE, INGEST, FileTask, ingest_kinds
from trapline.pipeline.sql import ingestion
from trapline.queue import jobs
from trapline.queue.gates import Gate
from trapline.queue.jobs import NewJob
from trapline.queue.kinds import Kinds
from trapline.queue.tasks import NewTask
from trapline.settings import Settings
from trapline.store.blobs import Blobs
from trapline.store.spooling import IN_MEMORY, Spool

_SMALL: Final = Gate("kind:file")
_LARGE: Final = Gate("kind:file large", bound=4)
_LONG: Final = timedelta(minutes=30)
# Small files are written together: so many, or so many bytes.
_MANY: Final = 100
_MUCH: Final = 8 * 2**20
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
class Refused:
    """A file that was not taken, and why."""

    name: str
    error: str


@dataclass(slots=True)
class Collecting:
    """Takes in files one after the other, in bounded memory."""

    database: Database
    blobs: Blobs
    settings: Settings
    files: list[NewFile] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    _waiting: list[Spool] = field(default_factory=list)
    _held: int = 0

    async def add(
        self,
        name: str,
        pieces: AsyncIterator[bytes],
        *,
        content_type: str | None = None,
        uri: str | None = None,
    ) -> None:
        """Take in one file; what is wrong with it is noted, and its bytes are read to their end."""
        if len(self.files) + len(self.refused) >= self.settings.upload_files:
            raise TooLarge(f"There are more than {self.settings.upload_files:,} files.")
        clean = clean_name(name)
        spool = Spool(self.settings.upload_bytes)
        error: str | None = None
        try:
            async for piece in pieces:
                if error is None:
                    error = _written(spool, piece)
            error = error or _fault(spool, content_type, clean)
        except OSError as unreadable:
            error = unreadable.strerror or str(unreadable)
        except BaseException:
            spool.close()
            raise
        if error is not None:
            spool.close()
            self.refused.append(Refused(clean, error))
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
        self._waiting.append(spool)
        self._held += spool.held
        if len(self._waiting) >= _MANY or self._held >= _MUCH or spool.held >= IN_MEMORY:
            await self.flush()

    async def flush(self) -> None:
        """Store what was taken in so far."""
        waiting, self._waiting, self._held = self._waiting, [], 0
        try:
            if waiting:
                async with self.database.system_tx() as conn:
                    await self.blobs.put_spooled(conn, waiting)
        finally:
            for spool in waiting:
                spool.close()

    def close(self) -> None:
        for spool in self._waiting:
            spool.close()


def _written(spool: Spool, piece: bytes) -> str | None:
    try:
        spool.write(piece)
    except TraplineError as error:
        return error.message
    return None


def _fault(spool: Spool, content_type: str | None, name: str) -> str | None:
    """Say what is wrong with a file at first sight."""
    if not spool.size:
        return "The file is empty."
    if spool.head.startswith(_ZIP):
        return None  # What an archive is stands at its end.
    kind = kind_of(spool.head, content_type, name)
    return "Its type is not known." if kind is Kind.UNKNOWN else None


def clean_name(name: str) -> str:
    """Make a name of what a sender says: its folders may stay, but it leads nowhere else."""
    parts = name.replace("\\", "/").split("/")
    kept = ["".join(c for c in part if c.isprintable()).strip() for part in parts]
    clean = "/".join(part for part in kept if part and part not in {".", ".."})
    return clean[-_LONGEST_NAME:].lstrip("/") or "unnamed"


def _media_type(content_type: str | None) -> str | None:
    """Return what a sender says of a file, unless it says nothing."""
    clean = "".join(c for c in content_type or "" if c.isprintable())[:200].strip()
    return None if clean.lower() in {"", "application/octet-stream"} else clean


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose files they are, and how they are made searchable."""

    organisation_id: OrganisationId
    config: IngestConfig
    application_id: ApplicationId | None = None
    member_id: MemberId | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one file: queued, or recognised."""

    file: NewFile
    source_id: SourceId
    recognised: bool


@dataclass(frozen=True, slots=True)
class Registered:
    """What became of an upload; without anything new there is no job."""

    taken: list[Taken]
    job_id: JobId | None

    @property
    def queued(self) -> int:
        return sum(not one.recognised for one in self.taken)


async def register(
    conn: Connection, owner: Owner, files: Sequence[NewFile], settings: Settings
) -> Registered:
    """Make sources and one job of files, all or none."""
    shelf = f"{owner.organisation_id} {owner.application_id}"
    await queries.lock_shelf(conn, shelf=shelf)
    plan = _Plan(jobs.new_id())
    known = await ingestion.known_files(
        conn,
        organisation_id=owner.organisation_id,
        application_id=owner.application_id,
        hashes=[one.sha256 for one in files],
        uri_digests=[_digest(one.uri) for one in files],
    )
    for row in known:
        ended = row.status in {"failed", "cancelled"} or (row.status == "pending" and not row.open)
        plan.learn(row.uri, row.sha256, row.source_id, again=ended)
    for one in files:
        plan.place(one)
    await _write(conn, owner, plan, settings)
    return Registered(plan.taken, plan.job_id if plan.added or plan.renewed else None)


@dataclass(slots=True)
class _Plan:
    """Decides for each file whether it is new, another state of one that is there, or there."""

    job_id: JobId
    taken: list[Taken] = field(default_factory=list)
    added: dict[SourceId, NewFile] = field(default_factory=dict)
    renewed: dict[SourceId, NewFile] = field(default_factory=dict)
    _by_uri: dict[str, tuple[bytes, SourceId]] = field(default_factory=dict)
    _by_hash: dict[bytes, SourceId] = field(default_factory=dict)
    _again: set[SourceId] = field(default_factory=set)

    def learn(self, uri: str, sha256: bytes, source_id: SourceId, *, again: bool) -> None:
        self._by_uri.setdefault(uri, (sha256, source_id))
        self._by_hash.setdefault(sha256, source_id)
        if again:
            self._again.add(source_id)

    def place(self, new: NewFile) -> None:
        here = self._by_uri.get(new.uri)
        if here is not None and here[0] != new.sha256:
            return self._renew(here[1], new)
        source_id = here[1] if here is not None else self._by_hash.get(new.sha256)
        if source_id is None:
            source_id = sources.new_id()
            self.added[source_id] = new
            self.learn(new.uri, new.sha256, source_id, again=False)
            self.taken.append(Taken(new, source_id, recognised=False))
        elif source_id in self._again:
            self._renew(source_id, new)
        else:
            self.taken.append(Taken(new, source_id, recognised=True))
        return None

    def _renew(self, source_id: SourceId, new: NewFile) -> None:
        target = self.added if source_id in self.added else self.renewed
        target[source_id] = new
        self._by_uri[new.uri] = (new.sha256, source_id)
        self._again.discard(source_id)
        self.taken.append(Taken(new, source_id, recognised=False))


async def _write(conn: Connection, owner: Owner, plan: _Plan, settings: Settings) -> None:
    new = plan.added | plan.renewed
    if not new:
        return
    now = datetime.now(UTC)
    config = msgspec.to_builtins(owner.config)
    await queries.add_files(
        conn,
        organisation_id=owner.organisation_id,
        application_id=owner.application_id,
        config=config,
        job_id=plan.job_id,
        created_by=owner.member_id,
        ids=list(plan.added),
        names=[one.name for one in plan.added.values()],
        uris=[one.uri for one in plan.added.values()],
        hashes=[one.sha256 for one in plan.added.values()],
        sizes=[one.size for one in plan.added.values()],
        content_types=[one.content_type for one in plan.added.values()],
    )
    await queries.renew_files(
        conn,
        job_id=plan.job_id,
        ids=list(plan.renewed),
        hashes=[one.sha256 for one in plan.renewed.values()],
        sizes=[one.size for one in plan.renewed.values()],
        content_types=[one.content_type for one in plan.renewed.values()],
    )
    ttl, _ = jobs.times_kept(settings)
    job = NewJob(
        INGEST,
        owner.organisation_id,
        id=plan.job_id,
        member_id=owner.member_id,
        options={"embedding_config": config},
        metadata={}
        if owner.application_id is None
        else {"application_id": str(owner.application_id)},
        ttl=ttl,
    )
    await jobs.submit(
        conn,
        Kinds(ingest_kinds()),
        job,
        [_task(owner, source_id, one, settings) for source_id, one in new.items()],
        now=now,
    )
    if owner.application_id is not None:
        made = (await jobs.get(conn, job.id)).created_at
        change = Change(owner.organisation_id, owner.application_id, job.id, made, total=len(new))
        await tally.add(conn, [change])


def _task(owner: Owner, source_id: SourceId, new: NewFile, settings: Settings) -> NewTask:
    large = new.size >= settings.large_file_bytes
    payload = FileTask(
        source_id=source_id,
        uri=new.uri,
        name=new.name,
        sha256=new.sha256.hex(),
        size=new.size,
        application_id=owner.application_id,
        content_type=new.content_type,
    )
    gate, timeout = (_LARGE, _LONG) if large else (_SMALL, None)
    return NewTask(FILE, payload, gate=gate, timeout=timeout)


def _digest(uri: str) -> str:
    return hashlib.md5(uri.encode(), usedforsecurity=False).hexdigest()
