"""What the stages hand each other: id types and frozen dataclasses.

Ids are distinct types, so that swapped arguments fail the type check.
"""

from typing import NewType
from uuid import UUID

OrganisationId = NewType("OrganisationId", UUID)
MemberId = NewType("MemberId", UUID)
ApiKeyId = NewType("ApiKeyId", UUID)
JobId = NewType("JobId", UUID)
TaskId = NewType("TaskId", int)
AgentId = NewType("AgentId", int)
SiteId = NewType("SiteId", UUID)
PageId = NewType("PageId", UUID)
UrlId = NewType("UrlId", int)
TraceId = NewType("TraceId", UUID)
