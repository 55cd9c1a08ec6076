"""What the stages hand each other: id types and frozen dataclasses.

Ids are distinct types, so that swapped arguments fail the type check.
"""

import secrets
import time
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


def new_uuid() -> UUID:
    """Return a UUIDv7: those made one after the other lie side by side in every index."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & ((1 << 48) - 1)) << 80 | 0x7 << 76
    return UUID(int=value | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62))
