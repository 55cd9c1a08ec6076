"""Dispatch of requests by the first segment of their path: to the dashboard, or to the API."""

from dataclasses import dataclass

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from trapline.dashboard.application import first_segments


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """An ASGI application over two; it also removes the path prefix that a proxy left on."""

    api: ASGIApp
    dashboard: ASGIApp
    segments: frozenset[str]
    prefix: str

    @classmethod
    def of(cls, api: FastAPI, dashboard: FastAPI, prefix: str) -> "Dispatcher":
        return cls(api, dashboard, first_segments(), prefix)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"} and self.prefix:
            scope = dict(scope) | {"path": self._path(scope["path"])}
        await self._application(scope)(scope, receive, send)

    def _path(self, path: str) -> str:
        if path == self.prefix or path.startswith(self.prefix + "/"):
            return path.removeprefix(self.prefix) or "/"
        return path

    def _application(self, scope: Scope) -> ASGIApp:
        if scope["type"] != "http":
            return self.api
        return self.dashboard if scope["path"].split("/")[1] in self.segments else self.api
