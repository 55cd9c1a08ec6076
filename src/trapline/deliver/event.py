"""Events of jobs, as the event log numbers them."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trapline.model import JobId, OrganisationId, TaskId


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a job. Its number is gapless within the job and gives the order."""

    job_id: JobId
    organisation_id: OrganisationId
    number: int
    type: str
    created_at: datetime
    task_id: TaskId | None = None
    data: dict[str, Any] = field(default_factory=dict)
