"""The site's controls over HTTP, on a port of their own: for tests whose site is another process."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tests.site.message import Request, Response
from tests.site.page import Page
from tests.site.rules import Group, Rules
from tests.site.site import Site
from tests.site.state import State
from tests.site.wire import Wire

Arguments = dict[str, Any]
_USAGE = "POST /COMMAND with a JSON object of its arguments; the answer is JSON."


class Control:
    """Turns `POST /fault {"pattern": "/shop/*", "status": 500}` into `site.fault(...)`."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._commands: dict[str, Callable[[Arguments], Any]] = {
            "where": lambda _: {"url": site.url, "hosts": site.hosts(), "env": site.env()},
            "log": lambda given: [entry.as_dict() for entry in site.log.of(**given)],
            "reachable": self._reachable,
            "fault": lambda given: asdict(site.fault(**_tuples(given))),
            "mend": lambda _: site.mend(),
            "change": self._change,
            "edit": lambda given: site.edit(**given).target,
            "remove": lambda given: site.remove(**given),
            "rules": self._rules,
            "tls": lambda given: {
                "url": site.tls(**given),
                "authority": str(site.authority.file),
            },
            "down": lambda _: site.down(),
            "up": lambda _: site.up(),
            "reset": lambda _: site.reset(),
        }

    def find(self, request: Request) -> Page:
        return Page(target=request.target, perform=self._perform)

    async def _perform(self, request: Request, wire: Wire, _state: State) -> None:
        # Commands wait for the site's loop, which is the one that runs this: so, in a thread.
        status, answer = await asyncio.to_thread(self._run, request)
        body = json.dumps(answer, default=str, ensure_ascii=False).encode() + b"\n"
        await wire.send(Response(status, body, content_type="application/json"))

    def _run(self, request: Request) -> tuple[int, Any]:
        command = self._commands.get(request.path.strip("/"))
        if command is None:
            return 404, {"usage": _USAGE, "commands": sorted(self._commands)}
        try:
            return 200, command(json.loads(request.body or b"{}"))
        except (TypeError, ValueError, KeyError) as error:
            return 400, {"error": str(error)}

    def _reachable(self, given: Arguments) -> Arguments:
        if "hosts" in given:
            given["hosts"] = frozenset(given["hosts"])
        truth = asdict(self._site.reachable(**given))
        return {name: _sorted(value) for name, value in truth.items()}

    def _change(self, given: Arguments) -> str:
        if "body" in given:
            given["body"] = given["body"].encode()
        return self._site.change(**_tuples(given)).target

    def _rules(self, given: Arguments) -> None:
        groups = tuple(
            Group(
                tuple(group["agents"]),
                tuple((verb, pattern) for verb, pattern in group.get("lines", ())),
                group.get("crawl_delay"),
            )
            for group in given.pop("groups")
        )
        rules = Rules(groups, tuple(given.pop("sitemaps", ())))
        self._site.set_rules(rules, **given)


def _tuples(given: Arguments) -> Arguments:
    """Headers are pairs, which JSON writes as lists."""
    if "headers" in given:
        given["headers"] = tuple((name, value) for name, value in given["headers"])
    return given


def _sorted(value: Any) -> Any:
    """Sets are lists in JSON, in an order that does not change."""
    if isinstance(value, dict):
        return {key: _sorted(inner) for key, inner in value.items()}
    return sorted(value) if isinstance(value, set) else value
