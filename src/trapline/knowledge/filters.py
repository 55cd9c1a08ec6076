"""Search filters: which texts of an organisation a search covers, and how many they are."""

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.knowledge.sql import search as queries
from trapline.model import ApplicationId, OrganisationId, SiteId, SourceId

# Up to this many passages are compared one by one: 3 microseconds each, and exact.
FEW_CHUNKS: Final = 10_000
# The most texts whose ids are listed: listing takes some milliseconds, comparing ids is fast.
MOST_TEXTS: Final = 20_000
# How long an estimate is reused, and how many are cached.
_ESTIMATE_SECONDS: Final = 30.0
_MOST_ESTIMATES: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """An empty field matches everything; of several values one must match."""

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
    """Prefix of the path."""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def empty(self) -> bool:
        return self == NO_FILTER

    def arguments(self, organisation_id: OrganisationId) -> dict[str, Any]:
        """Return the arguments that every filtered query takes."""
        return {
            "organisation_id": organisation_id,
            "sources": self.sources or None,
            "sites": self.sites or None,
            "applications": self.applications or None,
            "kinds": self.kinds or None,
            "languages": [primary_subtag(tag) for tag in self.languages] or None,
            "types": self.types or None,
            "hosts": [host.lower() for host in self.hosts] or None,
            "not_hosts": [host.lower() for host in self.not_hosts] or None,
            "path": self.path,
            "since": self.since,
            "until": self.until,
        }


def primary_subtag(tag: str) -> str:
    """`de` of `de-AT`."""
    return tag.lower().partition("-")[0]


NO_FILTER: Final = SearchFilter()


def _names_type(name: str, content_type: str) -> bool:
    """Whether a name matches a media type: as a whole, as its first half (`text/`), or as a word in it."""
    name, content_type = name.lower(), content_type.lower()
    if "/" not in name:
        return name in content_type
    return content_type.startswith(name) if name.endswith("/") else content_type == name


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The passages that one search covers. All arrays are sorted.

    `chunk_ids`: all passages, where they were listed. `share`: the estimated part of all texts that
    match the filter. `entry_ids`: the matching texts, where they are not many; `few` if their passages
    are few enough to compare each. `required`: the passages with the words that the query requires.
    `excluded`: the passages with words that it excludes.
    """

    organisation_id: OrganisationId
    filters: SearchFilter
    chunk_ids: NDArray[np.int64] | None = None
    share: float = 1.0
    entry_ids: NDArray[np.int64] | None = None
    few: bool = False
    required: NDArray[np.int64] | None = None
    excluded: NDArray[np.int64] | None = None

    @property
    def arguments(self) -> Mapping[str, Any]:
        return self.filters.arguments(self.organisation_id)


@dataclass(frozen=True, slots=True)
class FilterEstimate:
    """The estimated texts and passages that match a filter, and their share of all."""

    texts: int
    passages: float
    share: float


@dataclass(slots=True)
class FilterEstimates:
    """A cache of filter estimates. An outdated estimate costs time, never a result."""

    _cached: OrderedDict[tuple[OrganisationId, SearchFilter], tuple[float, FilterEstimate]] = field(
        default_factory=OrderedDict
    )

    async def of(
        self, conn: Connection, organisation_id: OrganisationId, filters: SearchFilter
    ) -> FilterEstimate:
        key, now = (organisation_id, filters), time.monotonic()
        cached = self._cached.get(key)
        if cached is not None and cached[0] > now:
            return cached[1]
        found = await _estimate(conn, organisation_id, filters)
        self._cached[key] = now + _ESTIMATE_SECONDS, found
        self._cached.move_to_end(key)
        while len(self._cached) > _MOST_ESTIMATES:
            self._cached.popitem(last=False)
        return found


async def _estimate(
    conn: Connection, organisation_id: OrganisationId, filters: SearchFilter
) -> FilterEstimate:
    texts = await queries.estimate_matching(conn, **filters.arguments(organisation_id))
    every = await queries.estimate_matching(conn, **NO_FILTER.arguments(organisation_id))
    # Both estimates err alike, so their ratio is better than either.
    share = min(1.0, max(texts, 1) / max(every, 1))
    passages = await queries.indexed_passages(conn, organisation_id=organisation_id)
    return FilterEstimate(texts, share * passages, share)


async def resolve_scope(
    conn: Connection,
    organisation_id: OrganisationId,
    filters: SearchFilter,
    estimates: FilterEstimates,
) -> SearchScope:
    """Estimate a filter: few matching texts are listed, many are checked as results come."""
    if filters.empty:
        return SearchScope(organisation_id, filters)
    if filters.types:
        # Full names can be looked up. No text has the empty type; without it an empty list would match all.
        stored = await queries.list_content_types(conn, organisation_id=organisation_id)
        fitting = [one for one in stored if any(_names_type(name, one) for name in filters.types)]
        filters = replace(filters, types=(*fitting, ""))
    arguments = filters.arguments(organisation_id)
    estimate = await estimates.of(conn, organisation_id, filters)
    scope = SearchScope(organisation_id, filters, share=estimate.share)
    if estimate.texts > MOST_TEXTS:
        return scope
    entries = await queries.matching_entries(conn, **arguments, most=MOST_TEXTS + 1)
    if len(entries) > MOST_TEXTS:
        return scope
    passages = estimate.passages * len(entries) / max(estimate.texts, 1)
    return replace(scope, entry_ids=_sorted(entries), few=passages <= FEW_CHUNKS)


async def list_chunks(conn: Connection, scope: SearchScope) -> SearchScope:
    """List all passages of a scope, however many: the last resort when filtering results found too few."""
    chunk_ids = await queries.matching_chunks(conn, **scope.arguments, most=2**31 - 1)
    return _without_barred(
        replace(scope, chunk_ids=_sorted(chunk_ids), required=None), scope.required
    )


async def narrow(
    conn: Connection,
    scope: SearchScope,
    required: NDArray[np.int64] | None,
    excluded: NDArray[np.int64],
) -> SearchScope:
    """Narrow a scope to the passages with the query's required words and without its excluded ones."""
    scope = replace(scope, excluded=excluded if len(excluded) else None)
    if scope.chunk_ids is not None:
        return _without_barred(scope, required)
    if required is None or len(required) > FEW_CHUNKS:
        return replace(scope, required=required)
    if not scope.filters.empty and len(required):
        required = _sorted(list(await matching_chunks(conn, scope, required.tolist())))
    return _without_barred(replace(scope, chunk_ids=required), None)


def _without_barred(scope: SearchScope, required: NDArray[np.int64] | None) -> SearchScope:
    chunk_ids = scope.chunk_ids
    if chunk_ids is not None and required is not None:
        chunk_ids = np.intersect1d(chunk_ids, required, assume_unique=True)
    if chunk_ids is not None and scope.excluded is not None:
        chunk_ids = np.setdiff1d(chunk_ids, scope.excluded, assume_unique=True)
    return replace(scope, chunk_ids=chunk_ids)


async def matching_chunks(
    conn: Connection, scope: SearchScope, chunk_ids: Sequence[int]
) -> set[int]:
    """Return those of these passages that match the filter."""
    if not chunk_ids:
        return set()
    rows = await queries.filter_chunks(conn, **scope.arguments, chunk_ids=chunk_ids)
    return {row.chunk_id for row in rows}


def _sorted(ids: Sequence[int]) -> NDArray[np.int64]:
    return np.sort(np.array(ids, np.int64))
