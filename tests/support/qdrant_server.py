"""A Qdrant on the loopback interface: its REST endpoints over the local mode of its own client.

The bodies that come in are read by the client's generated models, which refuse what the real server
would not understand.
"""

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ValidationError
from qdrant_client import QdrantClient
from qdrant_client.http import models

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _ok(result: Any) -> web.Response:
    return web.json_response({"result": result, "status": "ok", "time": 0.001})


def _error(status: int, said: str) -> web.Response:
    return web.json_response({"status": {"error": said}, "time": 0.001}, status=status)


@dataclass
class FakeQdrant:
    """`down` answers 503 to everything; `calls` are the methods and paths that came in."""

    key: str | None = None
    down: bool = False
    calls: list[str] = field(default_factory=list)
    store: QdrantClient = field(default_factory=lambda: QdrantClient(":memory:"))
    url: str = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["FakeQdrant"]:
        app = web.Application(middlewares=[self._guard], client_max_size=64 * 2**20)
        app.add_routes(
            [
                web.get("/collections", self._list),
                web.get("/collections/{name}", self._info),
                web.put("/collections/{name}", self._create),
                web.put("/collections/{name}/index", self._index),
                web.put("/collections/{name}/points", self._upsert),
                web.post("/collections/{name}/points/delete", self._delete),
                web.post("/collections/{name}/points/query", self._query),
                web.post("/collections/{name}/points/count", self._count),
            ]
        )
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        try:
            yield self
        finally:
            await runner.cleanup()
            self.store.close()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.calls.append(f"{request.method} {request.path.split('/', 3)[-1]}")
        name = request.match_info.get("name")
        if self.down:
            return _error(503, "down")
        if self.key is not None and request.headers.get("api-key") != self.key:
            return _error(401, "Must provide an API key")
        creating = request.method == "PUT" and request.path == f"/collections/{name}"
        if name is not None and not creating and not self.store.collection_exists(name):
            return _error(404, f"Not found: Collection `{name}` doesn't exist!")
        try:
            return await handler(request)
        except ValidationError as error:
            return _error(400, f"Format error in JSON body: {error}")

    async def _list(self, _: web.Request) -> web.Response:
        found = self.store.get_collections().collections
        return _ok({"collections": [{"name": one.name} for one in found]})

    async def _info(self, request: web.Request) -> web.Response:
        info = self.store.get_collection(request.match_info["name"])
        return _ok({"status": "green", "points_count": info.points_count})

    async def _create(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        body = await _read(request, models.CreateCollection)
        if self.store.collection_exists(name):
            return _error(409, f"Wrong input: Collection `{name}` already exists!")
        self.store.create_collection(name, vectors_config=body.vectors)
        return _ok(result=True)

    async def _index(self, request: web.Request) -> web.Response:
        await _read(request, models.CreateFieldIndex)
        return _ok({"operation_id": 1, "status": "completed"})

    async def _upsert(self, request: web.Request) -> web.Response:
        body = await _read(request, models.PointsList)
        self.store.upsert(request.match_info["name"], body.points)
        return _ok({"operation_id": 1, "status": "completed"})

    async def _delete(self, request: web.Request) -> web.Response:
        body = await _read(request, models.PointIdsList)
        self.store.delete(request.match_info["name"], body)
        return _ok({"operation_id": 1, "status": "completed"})

    async def _query(self, request: web.Request) -> web.Response:
        body = await _read(request, models.QueryRequest)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.store.query_points(
                request.match_info["name"],
                query=body.query,
                query_filter=body.filter,
                limit=body.limit,
                search_params=body.params,
                with_payload=body.with_payload,
            )
        return _ok({"points": [{"id": p.id, "version": 0, "score": p.score} for p in found.points]})

    async def _count(self, request: web.Request) -> web.Response:
        body = await _read(request, models.CountRequest)
        found = self.store.count(request.match_info["name"], count_filter=body.filter)
        return _ok({"count": found.count})


async def _read(request: web.Request, kind: type[BaseModel]) -> Any:
    return kind.model_validate(await request.json())
