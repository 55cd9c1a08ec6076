"""A caller who waits for an answer: who it is, and until when it waits."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trapline.errors import TookTooLong, Unauthorised
from trapline.model import ApiKeyId, JobId, MemberId, OrganisationId, TraceId


class AskerChanged(Unauthorised):
    """Who was known a moment ago may not do this now, or is somebody else."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who someone is taken for by what was known a moment ago; to be looked up before anything is done."""

    api_key_id: ApiKeyId | None
    """None: nobody in particular, on a server without keys."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and what else is noted with the job."""

    organisation_id: OrganisationId
    member_id: MemberId | None = None
    trace_id: TraceId | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    job_id: JobId | None = None
    """The id that the job shall have; a new one if None."""
    claim: Claim | None = None
    """Set where it is not established who asks."""


@asynccontextmanager
async def until(latest: datetime) -> AsyncIterator[None]:
    """Bound what is done inside by a moment; TookTooLong when it is not over by then."""
    try:
        async with asyncio.timeout((latest - datetime.now(UTC)).total_seconds()):
            yield
    except TimeoutError:
        raise TookTooLong("The page was not there in the time that was given.") from None
