"""The way of one fetch: hop by hop, each approved, sent, timed and recorded."""

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from time import time

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch import headers as http
from trapline.fetch.clock import Clock
from trapline.fetch.exchange import Exchange
from trapline.fetch.faults import EXPECTED, failure
from trapline.fetch.outcome import PERMANENT, REDIRECTS, outcome, sentence
from trapline.fetch.route import Route
from trapline.fetch.sniff import essence, media_type, sniff
from trapline.fetch.target import Target, joined, target
from trapline.model import (
    Fetched,
    FetchLimits,
    FetchRequest,
    RedirectSource,
    RedirectTrace,
    RequestTrace,
)


class Journey:
    """Collects what happens on the way; `run` ends with a result, whatever happens."""

    def __init__(
        self,
        request: FetchRequest,
        limits: FetchLimits,
        route: Route,
        headers: Mapping[str, str],
    ) -> None:
        self._request = request
        self._limits = limits
        self._route = route
        self._headers = headers
        self._seconds = limits.total
        self._requests: list[RequestTrace] = []
        self._redirects: list[RedirectTrace] = []
        self._url = request.url
        self._last: Exchange | None = None
        self._asked: set[tuple[str, str]] = set()
        self._robots_approved = True

    async def run(self) -> Fetched:
        try:
            first = self._upgraded(target(self._request.url, self._limits.url_bytes))
            goal = first
            while True:
                exchange = await self._hop(
                    goal, trusted=goal is first or first.may_share_secrets(goal)
                )
                if exchange.status not in REDIRECTS:
                    return self._arrived(exchange)
                goal = self._upgraded(self._redirected(exchange))
        except VisitFailed as error:
            return self._result(error.code, error.message)

    async def _hop(self, goal: Target, *, trusted: bool) -> Exchange:
        """Make one request, with the caller's secrets if it is `trusted` with them."""
        self._url = goal.text
        self._last = None
        await self._approve(goal)
        headers = self._headers_for(goal, trusted=trusted)
        exchange = self._last = Exchange(goal, self._limits)
        try:
            await self._send(exchange, headers)
        except VisitFailed as error:
            self._record(exchange, error.code)
            raise
        self._note(exchange)
        return exchange

    async def _approve(self, goal: Target) -> None:
        verdict = await self._request.approve(goal.text)
        self._robots_approved = verdict.robots_approved
        if verdict.refusal is not None:
            raise VisitFailed(verdict.refusal, verdict.detail)

    async def _send(self, exchange: Exchange, headers: Mapping[str, str]) -> None:
        goal, route = exchange.target, self._route
        clock = Clock(self._route.watch, self._limits, self._seconds)
        try:
            with clock:
                await route.check_behind_proxy(goal)
                await exchange.ask(
                    route.connector,
                    headers,
                    clock,
                    proxy=route.proxy,
                    tls=route.tls,
                )
                if exchange.status in REDIRECTS:
                    await exchange.drain()
                else:
                    await exchange.read()
        except EXPECTED as error:
            raise failure(error) from error
        finally:
            self._seconds -= clock.elapsed

    def _headers_for(self, goal: Target, *, trusted: bool) -> Mapping[str, str]:
        request = self._request
        headers = self._headers if trusted else http.without_secrets(self._headers)
        cookies = request.cookies.header(goal.text) if request.cookies is not None else ""
        self._refuse_loop(goal, cookies)
        conditional = request.conditional
        if conditional is not None and conditional.url == goal.text:
            headers = {**headers, **http.conditions(conditional)}
        return http.with_cookies(headers, cookies) if cookies else headers

    def _refuse_loop(self, goal: Target, cookies: str) -> None:
        # To come back with other cookies is no loop: so do sites that test for them.
        step = (goal.text, cookies)
        if step in self._asked:
            raise VisitFailed(ExitCode.REDIRECT_LOOP, f"back to {goal.text}")
        self._asked.add(step)

    def _note(self, exchange: Exchange) -> None:
        """Take over what the answer says for later requests."""
        goal = exchange.target
        cookies = self._request.cookies
        if cookies is not None and "Set-Cookie" in exchange.headers:
            cookies.remember(goal.text, exchange.headers.getall("Set-Cookie"))
        policy = exchange.headers.get("Strict-Transport-Security")
        if policy and goal.secure and self._request.verify_tls:
            self._route.strict.note(goal.host, policy, time())

    def _upgraded(self, goal: Target) -> Target:
        if goal.secure or not self._route.strict.covers(goal.host, time()):
            return goal
        better = goal.upgraded()
        self._follow(goal, better, RedirectSource.HSTS, permanent=True)
        return better

    def _redirected(self, exchange: Exchange) -> Target:
        """Record where the answer sends us."""
        try:
            to = self._location(exchange)
        except VisitFailed as error:
            self._record(exchange, error.code)
            raise
        self._record(exchange, ExitCode.REDIRECTED)
        permanent = exchange.status in PERMANENT
        self._follow(exchange.target, to, RedirectSource.HTTP, permanent=permanent)
        return to

    def _location(self, exchange: Exchange) -> Target:
        location = http.text(exchange.headers, "Location")
        if not location:
            detail = f"{exchange.status} without a Location"
            raise VisitFailed(ExitCode.MALFORMED_RESPONSE, detail)
        return joined(exchange.target, location, self._limits.url_bytes)

    def _follow(self, goal: Target, to: Target, source: RedirectSource, *, permanent: bool) -> None:
        request = len(self._requests) - 1 if source is RedirectSource.HTTP else None
        self._redirects.append(RedirectTrace(goal.text, to.text, source, permanent, request))
        if len(self._redirects) > self._limits.redirects:
            raise VisitFailed(ExitCode.TOO_MANY_REDIRECTS, f"more than {self._limits.redirects}")

    def _record(self, exchange: Exchange, code: ExitCode) -> None:
        self._requests.append(exchange.trace(code, robots_approved=self._robots_approved))

    def _arrived(self, exchange: Exchange) -> Fetched:
        status = exchange.status
        if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED and self._route.proxy is not None:
            self._record(exchange, ExitCode.PROXY_FAILURE)
            return self._result(ExitCode.PROXY_FAILURE, sentence(ExitCode.PROXY_FAILURE, status))
        conditional = self._request.conditional
        code = outcome(
            status,
            exchange.headers,
            exchange.body,
            conditional=conditional is not None and conditional.url == exchange.target.text,
        )
        self._record(exchange, code)
        return self._result(code, sentence(code, status))

    def _result(self, code: ExitCode, message: str) -> Fetched:
        last = self._last
        proxy = self._route.proxy
        via = None if proxy is None else f"{proxy.scheme}://{proxy.host_port_subcomponent}"
        if last is None or not last.status:
            return Fetched(
                exit_code=code,
                message=message,
                url=self._url,
                requests=tuple(self._requests),
                redirects=tuple(self._redirects),
                remote_address=last.remote_address if last is not None else None,
                proxy=via,
            )
        body, said = last.body, http.text(last.headers, "Content-Type")
        sniffed = sniff(body) if body else None
        return Fetched(
            exit_code=code,
            message=message,
            url=self._url,
            requests=tuple(self._requests),
            redirects=tuple(self._redirects),
            status=last.status,
            headers=http.readable(last.headers),
            body=body,
            content_type=said,
            sniffed_type=sniffed,
            media_type=media_type(said, sniffed) if sniffed is not None else essence(said),
            wire_bytes=last.wire_bytes,
            retry_after=_hint(last),
            remote_address=last.remote_address,
            proxy=via,
        )


def _hint(exchange: Exchange) -> float | None:
    asked = exchange.headers.get("Retry-After")
    return http.retry_after(asked, datetime.now(UTC)) if asked else None
