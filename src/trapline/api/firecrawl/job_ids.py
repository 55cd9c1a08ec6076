"""Job ids in paths, and job ids derived from idempotency keys."""

from typing import Annotated, Final
from uuid import UUID, uuid5

from fastapi import Depends

from trapline.api.firecrawl.errors import Refusal
from trapline.model import JobId, OrganisationId

_KEYS: Final = UUID("6f1f6a0e-3d0c-5a6b-9a53-6d1e0b7c2f11")
_LONGEST_KEY: Final = 500


def parse(job_id: str) -> JobId:
    """Parse a job id; the contract has one message for all invalid ones."""
    try:
        return JobId(UUID(job_id))
    except ValueError:
        raise Refusal(400, "Invalid job ID") from None


async def _parsed(job_id: str) -> JobId:
    return parse(job_id)


JobReference = Annotated[JobId, Depends(_parsed)]


def of_key(organisation_id: OrganisationId, key: str | None) -> JobId | None:
    """Return the id that a job gets for an idempotency key: a second one of that key is refused
    by the database, for as long as the first is remembered.
    """
    if not key:
        return None
    if len(key) > _LONGEST_KEY:
        raise Refusal(400, "The idempotency key is too long.", "BAD_REQUEST")
    return JobId(uuid5(_KEYS, f"{organisation_id} {key}"))
