"""A caller who waits for an answer: who it is, and until when it waits."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
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


class until:  # noqa: N801 (read as the word that it is)
    """Bound what is done inside by a moment; TookTooLong when it is not over by then."""

    __slots__ = ("_timeout",)

    def __init__(self, latest: datetime) -> None:
        self._timeout = asyncio.timeout((latest - datetime.now(UTC)).total_seconds())

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        late = isinstance(error, TimeoutError)
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            late = True
        if late:
            raise TookTooLong("The page was not there in the time that was given.") from None
