"""Client of Qdrant's REST interface: collections, points, nearest neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import msgspec

from trapline.errors import Unavailable
from trapline.settings import VectorSettings

_LARGEST: Final = 64 * 2**20
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
# Numbers of links in the graph of each organisation; none go from one organisation to another.
_LINKS: Final = 16

Condition = dict[str, Any]


class Point(msgspec.Struct, frozen=True):
    """The vector of a chunk, with the payload that filters use."""

    id: int
    vector: list[float]
    payload: dict[str, str | int | None]


class _Hit(msgspec.Struct):
    id: int
    score: float


class _Hits(msgspec.Struct):
    points: list[_Hit]


class _Collection(msgspec.Struct):
    name: str


class _Collections(msgspec.Struct):
    collections: list[_Collection]


class _Response(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw(b"null")
    status: Any = None


def match(key: str, values: Sequence[str]) -> Condition:
    """A condition that a point's payload has one of some values."""
    return {"key": key, "match": {"any": list(values)}}


@dataclass(slots=True)
class Qdrant:
    """One client for a process; close it with `aclose`."""

    url: str
    key: str | None = None
    seconds: float = 10.0
    _session: aiohttp.ClientSession | None = None
    _known: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, settings: VectorSettings) -> "Qdrant | None":
        """Return a client of the configured Qdrant, if there is one."""
        if settings.qdrant_url is None:
            return None
        key = settings.qdrant_key
        secret = None if key is None else key.get_secret_value()
        return cls(settings.qdrant_url.rstrip("/"), secret, settings.qdrant_timeout)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def collections(self, prefix: str) -> list[str]:
        """Return the names of collections with a prefix."""
        raw = await self._call("GET", "/collections")
        found = msgspec.json.decode(raw or b"", type=_Collections)
        return [one.name for one in found.collections if one.name.startswith(prefix)]

    async def ensure_collection(self, name: str, dimension: int) -> None:
        """Create a collection if it is missing: one graph for each organisation, none over all."""
        if name in self._known:
            return
        if await self._call("GET", f"/collections/{name}", missing_is_fine=True) is None:
            wanted = {
                "vectors": {"size": dimension, "distance": "Dot", "datatype": "float16"},
                "hnsw_config": {"m": 0, "payload_m": _LINKS},
            }
            await self._call("PUT", f"/collections/{name}", wanted, conflict_is_fine=True)
        tenant = {"type": "keyword", "is_tenant": True}
        for field_name, schema in (
            ("organisation", tenant),
            ("source", "keyword"),
            ("language", "keyword"),
            ("type", "keyword"),
        ):
            index = {"field_name": field_name, "field_schema": schema}
            await self._call("PUT", f"/collections/{name}/index?wait=true", index)
        self._known.add(name)

    async def upsert(self, name: str, points: Sequence[Point]) -> None:
        """Write points; return when a search sees them."""
        if points:
            await self._call("PUT", f"/collections/{name}/points?wait=true", {"points": points})

    async def delete(self, name: str, ids: Sequence[int]) -> None:
        """Delete points; a missing collection has none."""
        if ids:
            path = f"/collections/{name}/points/delete?wait=true"
            await self._call("POST", path, {"points": list(ids)}, missing_is_fine=True)

    async def nearest(
        self, name: str, numbers: Sequence[float], must: Sequence[Condition], most: int
    ) -> list[tuple[int, float]]:
        """Return the points nearest to a vector that meet all conditions, with their scores."""
        asked = {
            "query": list(numbers),
            "filter": {"must": list(must)},
            "limit": most,
            "params": {"hnsw_ef": max(most, 100)},
            "with_payload": False,
        }
        raw = await self._call("POST", f"/collections/{name}/points/query", asked)
        try:
            hits = msgspec.json.decode(raw or b"", type=_Hits)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"Qdrant's answer cannot be read: {error}") from None
        return [(hit.id, hit.score) for hit in hits.points]

    async def count(self, name: str, must: Sequence[Condition] = ()) -> int:
        """Return the number of points that meet all conditions."""
        asked: Mapping[str, Any] = {"filter": {"must": list(must)}, "exact": True}
        path = f"/collections/{name}/points/count"
        raw = await self._call("POST", path, asked, missing_is_fine=True)
        return 0 if raw is None else int(msgspec.json.decode(raw)["count"])

    async def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        missing_is_fine: bool = False,
        conflict_is_fine: bool = False,
    ) -> bytes | None:
        """Return the `result` of a response; None if the target is missing."""
        if self._session is None:
            headers = {"Content-Type": "application/json"}
            if self.key is not None:
                headers["api-key"] = self.key
            timeout = aiohttp.ClientTimeout(total=self.seconds)
            self._session = aiohttp.ClientSession(headers=headers, timeout=timeout)
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._session.request(method, self.url + path, data=data) as answer:
                content = await answer.content.read(_LARGEST)
                status = answer.status
        except (aiohttp.ClientError, TimeoutError) as error:
            why = str(error) or "the request timed out"
            raise Unavailable(f"Qdrant cannot be reached: {why}") from None
        if status == _NOT_FOUND:
            self._known.clear()
        if (status == _NOT_FOUND and missing_is_fine) or (status == _CONFLICT and conflict_is_fine):
            return None
        if status >= 300:  # noqa: PLR2004 (HTTP)
            said = content[:300].decode("utf-8", "replace")
            raise Unavailable(f"Qdrant answered {status} to {method} {path}: {said}")
        try:
            return bytes(msgspec.json.decode(content, type=_Response).result)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"Qdrant's answer cannot be read: {error}") from None
