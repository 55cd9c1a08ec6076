"""The caller who waits for a response: identity, job metadata and deadline."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trapline.errors import DeadlineExceeded, Unauthorised
from trapline.model import ApiKeyId, JobId, MemberId, OrganisationId, TraceId


class CallerChanged(Unauthorised):
    """The cached identity of the caller is out of date: the API key was revoked or changed."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An identity from the cache, to be verified in the database before anything is written."""

    api_key_id: ApiKeyId | None
    """None on a server without keys."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and the metadata that is stored with the job."""

    organisation_id: OrganisationId
    member_id: MemberId | None = None
    trace_id: TraceId | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    job_id: JobId | None = None
    """The id to give the job; a new one if None."""
    claim: Claim | None = None
    """Set while the identity is unverified."""


@asynccontextmanager
async def deadline(latest: datetime) -> AsyncIterator[None]:
    """Bound a block by a moment in time; DeadlineExceeded when it runs longer."""
    try:
        async with asyncio.timeout((latest - datetime.now(UTC)).total_seconds()):
            yield
    except TimeoutError:
        raise DeadlineExceeded("The page was not there before the deadline.") from None
