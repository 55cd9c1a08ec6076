"""What a sitemap says of one page, or of another sitemap."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto


class EntryKind(Enum):
    PAGE = auto()
    SITEMAP = auto()


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """`url` is as written: absolute by the protocol, so `canonical` needs no base.

    `alternates` are (language, URL).
    """

    kind: EntryKind
    url: str
    modified: datetime | None = None
    priority: float | None = None
    changes: str | None = None
    alternates: tuple[tuple[str, str], ...] = ()
