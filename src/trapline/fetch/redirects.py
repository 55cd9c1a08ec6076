"""Redirect loop of a fetch: every hop is approved, sent, timed and recorded."""

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from time import time

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch import headers as http
from trapline.fetch.exceptions import EXPECTED, visit_failure
from trapline.fetch.exchange import Exchange
from trapline.fetch.outcome import PERMANENT, REDIRECTS, outcome, sentence
from trapline.fetch.route import Route
from trapline.fetch.sniff import essence, media_type, sniff
from trapline.fetch.target import Target, parse_target, resolve_location
from trapline.fetch.timeouts import Deadline
from trapline.model import (
    Fetched,
    FetchLimits,
    FetchRequest,
    RedirectSource,
    RedirectTrace,
    RequestTrace,
)


class RedirectChain:
    """The hops of one fetch; `run` returns a result, whatever happens."""

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
        self._steps: set[tuple[str, str]] = set()
        self._robots_approved = True

    async def run(self) -> Fetched:
        try:
            first = self._upgraded(parse_target(self._request.url, self._limits.url_bytes))
            target = first
            while True:
                exchange = await self._hop(
                    target, trusted=target is first or first.may_share_secrets(target)
                )
                if exchange.status not in REDIRECTS:
                    return self._arrived(exchange)
                target = self._upgraded(self._redirected(exchange))
        except VisitFailed as error:
            return self._result(error.code, error.message)

    async def _hop(self, target: Target, *, trusted: bool) -> Exchange:
        """Send one request, with the caller's secrets if the target is `trusted` with them."""
        self._url = target.text
        self._last = None
        await self._approve(target)
        headers = self._headers_for(target, trusted=trusted)
        exchange = self._last = Exchange(target, self._limits)
        try:
            await self._send(exchange, headers)
        except VisitFailed as error:
            self._record(exchange, error.code)
            raise
        self._note(exchange)
        return exchange

    async def _approve(self, target: Target) -> None:
        approval = await self._request.approve(target.text)
        self._robots_approved = approval.robots_approved
        if approval.refusal is not None:
            raise VisitFailed(approval.refusal, approval.detail)

    async def _send(self, exchange: Exchange, headers: Mapping[str, str]) -> None:
        target, route = exchange.target, self._route
        deadline = Deadline(self._route.timer, self._limits, self._seconds)
        try:
            with deadline:
                await route.check_behind_proxy(target)
                await exchange.send(
                    route.connector,
                    headers,
                    deadline,
                    proxy=route.proxy,
                    tls=route.tls,
                )
                if exchange.status in REDIRECTS:
                    await exchange.drain()
                else:
                    await exchange.read()
        except EXPECTED as error:
            raise visit_failure(error) from error
        finally:
            self._seconds -= deadline.elapsed

    def _headers_for(self, target: Target, *, trusted: bool) -> Mapping[str, str]:
        request = self._request
        headers = self._headers if trusted else http.without_secrets(self._headers)
        cookies = request.cookies.header(target.text) if request.cookies is not None else ""
        self._refuse_loop(target, cookies)
        conditional = request.conditional
        if conditional is not None and conditional.url == target.text:
            headers = {**headers, **http.conditional_headers(conditional)}
        return http.with_cookies(headers, cookies) if cookies else headers

    def _refuse_loop(self, target: Target, cookies: str) -> None:
        # The same URL with other cookies is no loop: some sites test for cookies so.
        step = (target.text, cookies)
        if step in self._steps:
            raise VisitFailed(ExitCode.REDIRECT_LOOP, f"back to {target.text}")
        self._steps.add(step)

    def _note(self, exchange: Exchange) -> None:
        """Store the response's cookies and HSTS policy for later requests."""
        target = exchange.target
        cookies = self._request.cookies
        if cookies is not None and "Set-Cookie" in exchange.headers:
            cookies.remember(target.text, exchange.headers.getall("Set-Cookie"))
        policy = exchange.headers.get("Strict-Transport-Security")
        if policy and target.secure and self._request.verify_tls:
            self._route.strict.note(target.host, policy, time())

    def _upgraded(self, target: Target) -> Target:
        if target.secure or not self._route.strict.covers(target.host, time()):
            return target
        better = target.upgraded()
        self._follow(target, better, RedirectSource.HSTS, permanent=True)
        return better

    def _redirected(self, exchange: Exchange) -> Target:
        """Record the redirect and return its target."""
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
        location = http.decoded_value(exchange.headers, "Location")
        if not location:
            detail = f"{exchange.status} without a Location"
            raise VisitFailed(ExitCode.MALFORMED_RESPONSE, detail)
        return resolve_location(exchange.target, location, self._limits.url_bytes)

    def _follow(
        self, target: Target, to: Target, source: RedirectSource, *, permanent: bool
    ) -> None:
        request = len(self._requests) - 1 if source is RedirectSource.HTTP else None
        self._redirects.append(RedirectTrace(target.text, to.text, source, permanent, request))
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
        body, content_type = last.body, http.decoded_value(last.headers, "Content-Type")
        sniffed = sniff(body) if body else None
        return Fetched(
            exit_code=code,
            message=message,
            url=self._url,
            requests=tuple(self._requests),
            redirects=tuple(self._redirects),
            status=last.status,
            headers=http.decoded_headers(last.headers),
            body=body,
            content_type=content_type,
            sniffed_type=sniffed,
            media_type=media_type(content_type, sniffed)
            if sniffed is not None
            else essence(content_type),
            wire_bytes=last.wire_bytes,
            retry_after=_retry_after(last),
            remote_address=last.remote_address,
            proxy=via,
        )


def _retry_after(exchange: Exchange) -> float | None:
    header = exchange.headers.get("Retry-After")
    return http.retry_after(header, datetime.now(UTC)) if header else None
