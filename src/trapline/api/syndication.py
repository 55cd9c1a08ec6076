"""Web feeds: JSON Feed 1.1 and Atom."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import msgspec

JSON_FEED: Final[dict[str, Any]] = {"application/feed+json": {"schema": {"type": "object"}}}
ATOM_FEED: Final[dict[str, Any]] = {"application/atom+xml": {"schema": {"type": "string"}}}
# Characters that XML cannot hold in any form.
_NOT_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a feed."""

    id: str
    url: str
    title: str
    summary: str
    at: datetime
    tags: tuple[str, ...] = ()


def json_feed(entries: Sequence[Entry], *, title: str, url: str) -> bytes:
    return msgspec.json.encode(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": title,
            "feed_url": url,
            "items": [
                {
                    "id": entry.id,
                    "url": entry.url,
                    "title": entry.title,
                    "content_text": entry.summary,
                    "date_published": entry.at,
                    "tags": entry.tags,
                }
                for entry in entries
            ],
        }
    )


def atom_feed(entries: Sequence[Entry], *, title: str, url: str, now: datetime) -> bytes:
    updated = max((entry.at for entry in entries), default=now)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>{_text(title)}</title>",
        f"<id>{_text(url)}</id>",
        f'<link rel="self" href={_attribute(url)}/>',
        f"<updated>{updated.isoformat()}</updated>",
        "<author><name>Trapline</name></author>",
        *(_atom_entry(entry) for entry in entries),
        "</feed>",
        "",
    ]
    return "\n".join(lines).encode()


def _atom_entry(entry: Entry) -> str:
    tags = "".join(f"<category term={_attribute(tag)}/>" for tag in entry.tags)
    return (
        f"<entry><id>{_text(entry.id)}</id><title>{_text(entry.title)}</title>"
        f"<link href={_attribute(entry.url)}/><updated>{entry.at.isoformat()}</updated>"
        f"{tags}<summary>{_text(entry.summary)}</summary></entry>"
    )


def _text(value: str) -> str:
    return escape(_NOT_XML.sub("", value))


def _attribute(value: str) -> str:
    return quoteattr(_NOT_XML.sub("", value))
