"""What happened to a job, as the event log has it: the queue's rows become these at the border."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trapline.model import JobId, OrganisationId, TaskId


@dataclass(frozen=True, slots=True)
class Happening:
    """One event. Its number is gapless in its job, and tells the order."""

    job_id: JobId
    organisation_id: OrganisationId
    number: int
    type: str
    created_at: datetime
    task_id: TaskId | None = None
    data: dict[str, Any] = field(default_factory=dict)
