"""Which texts of an organisation a search is about."""

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.knowledge.sql import searching as queries
from trapline.model import ApplicationId, OrganisationId, SiteId, SourceId

# Up to so many passages are looked at one by one: it takes 3 microseconds for each and misses none.
SMALL: Final = 10_000
# Texts that are listed at most: their numbers are compared fast, and they take some milliseconds to list.
MOST_TEXTS: Final = 20_000
# Seconds for which a guess about a filter is good enough, and how many are kept.
_A_MOMENT: Final = 30.0
_MOST_KNOWN: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What is empty fits everything; of several values one must fit."""

    sources: tuple[SourceId, ...] = ()
    sites: tuple[SiteId, ...] = ()
    applications: tuple[ApplicationId, ...] = ()
    kinds: tuple[str, ...] = ()
    """Of sources: file, url, site."""
    languages: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """Media types, whole (`application/pdf`), their first half (`text/`) or a word in them (`pdf`)."""
    hosts: tuple[str, ...] = ()
    not_hosts: tuple[str, ...] = ()
    path: str | None = None
    """What a path begins with."""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def empty(self) -> bool:
        return self == EVERYTHING

    def arguments(self, organisation_id: OrganisationId) -> dict[str, Any]:
        """Return what every query with a filter takes."""
        return {
            "organisation_id": organisation_id,
            "sources": self.sources or None,
            "sites": self.sites or None,
            "applications": self.applications or None,
            "kinds": self.kinds or None,
            "languages": [primary(tag) for tag in self.languages] or None,
            "types": self.types or None,
            "hosts": [host.lower() for host in self.hosts] or None,
            "not_hosts": [host.lower() for host in self.not_hosts] or None,
            "path": self.path,
            "since": self.since,
            "until": self.until,
        }


def primary(tag: str) -> str:
    """`de` of `de-AT`."""
    return tag.lower().partition("-")[0]


EVERYTHING: Final = Filter()


def _is_of(name: str, content_type: str) -> bool:
    """Whether a media type is meant by a name: it, its first half (`text/`), or a word in it."""
    name, content_type = name.lower(), content_type.lower()
    if "/" not in name:
        return name in content_type
    return content_type.startswith(name) if name.endswith("/") else content_type == name


@dataclass(frozen=True, slots=True)
class Scope:
    """What one search is about: `among`, sorted, are all its passages, where they had to be listed.

    `share` is about which part of all texts fits the filter; `entries`, sorted, are those, where they
    are not many, and `few` says that their passages seem to be few enough to look at each. `only`,
    sorted, are all passages that may be found beside the filter, where they are not few; `barred`,
    sorted, are not found.
    """

    organisation_id: OrganisationId
    wanted: Filter
    among: NDArray[np.int64] | None = None
    share: float = 1.0
    entries: NDArray[np.int64] | None = None
    few: bool = False
    only: NDArray[np.int64] | None = None
    barred: NDArray[np.int64] | None = None

    @property
    def arguments(self) -> Mapping[str, Any]:
        return self.wanted.arguments(self.organisation_id)


@dataclass(frozen=True, slots=True)
class Width:
    """About how many texts and passages fit a filter, and which part of all that is."""

    texts: int
    passages: float
    share: float


@dataclass(slots=True)
class Widths:
    """How wide filters are, as was found out a moment ago: what is out of date costs time, no result."""

    _known: OrderedDict[tuple[OrganisationId, Filter], tuple[float, Width]] = field(
        default_factory=OrderedDict
    )

    async def of(self, conn: Connection, organisation_id: OrganisationId, wanted: Filter) -> Width:
        key, now = (organisation_id, wanted), time.monotonic()
        known = self._known.get(key)
        if known is not None and known[0] > now:
            return known[1]
        found = await _width(conn, organisation_id, wanted)
        self._known[key] = now + _A_MOMENT, found
        self._known.move_to_end(key)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return found


async def _width(conn: Connection, organisation_id: OrganisationId, wanted: Filter) -> Width:
    texts = await queries.estimate_matching(conn, **wanted.arguments(organisation_id))
    every = await queries.estimate_matching(conn, **EVERYTHING.arguments(organisation_id))
    # Both guesses err alike, so that their ratio is better than either.
    share = min(1.0, max(texts, 1) / max(every, 1))
    passages = await queries.indexed_passages(conn, organisation_id=organisation_id)
    return Width(texts, share * passages, share)


async def scope_of(
    conn: Connection, organisation_id: OrganisationId, wanted: Filter, widths: Widths
) -> Scope:
    """Find out how wide a filter is: what is few is listed, what is many is checked as it comes."""
    if wanted.empty:
        return Scope(organisation_id, wanted)
    if wanted.types:
        # Named in full they can be looked up; nothing has the last one, for an empty list fits all.
        there = await queries.content_types(conn, organisation_id=organisation_id)
        fitting = [one for one in there if any(_is_of(name, one) for name in wanted.types)]
        wanted = replace(wanted, types=(*fitting, ""))
    arguments = wanted.arguments(organisation_id)
    width = await widths.of(conn, organisation_id, wanted)
    scope = Scope(organisation_id, wanted, share=width.share)
    if width.texts > MOST_TEXTS:
        return scope
    entries = await queries.matching_entries(conn, **arguments, most=MOST_TEXTS + 1)
    if len(entries) > MOST_TEXTS:
        return scope
    passages = width.passages * len(entries) / max(width.texts, 1)
    return replace(scope, entries=_sorted(entries), few=passages <= SMALL)


async def listed(conn: Connection, scope: Scope) -> Scope:
    """List all passages of a scope, however many: for when checking as they come did not do."""
    among = await queries.matching_chunks(conn, **scope.arguments, most=2**31 - 1)
    return _without_barred(replace(scope, among=_sorted(among), only=None), scope.only)


async def narrowed(
    conn: Connection,
    scope: Scope,
    only: NDArray[np.int64] | None,
    barred: NDArray[np.int64],
) -> Scope:
    """Make a scope narrower by what words a query insists on and which it has ruled out."""
    scope = replace(scope, barred=barred if len(barred) else None)
    if scope.among is not None:
        return _without_barred(scope, only)
    if only is None or len(only) > SMALL:
        return replace(scope, only=only)
    if not scope.wanted.empty and len(only):
        only = _sorted(list(await fitting(conn, scope, only.tolist())))
    return _without_barred(replace(scope, among=only), None)


def _without_barred(scope: Scope, only: NDArray[np.int64] | None) -> Scope:
    among = scope.among
    if among is not None and only is not None:
        among = np.intersect1d(among, only, assume_unique=True)
    if among is not None and scope.barred is not None:
        among = np.setdiff1d(among, scope.barred, assume_unique=True)
    return replace(scope, among=among)


async def fitting(conn: Connection, scope: Scope, chunk_ids: Sequence[int]) -> set[int]:
    """Return which of these passages fit the filter."""
    if not chunk_ids:
        return set()
    rows = await queries.matching(conn, **scope.arguments, chunk_ids=chunk_ids)
    return {row.chunk_id for row in rows}


def _sorted(ids: Sequence[int]) -> NDArray[np.int64]:
    return np.sort(np.array(ids, np.int64))
