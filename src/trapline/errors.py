"""The exception hierarchy, and the table of outcomes of a visit.

    TraplineError
    ├── InvalidInput            the request cannot be understood               HTTP 400   exit 2
    │   └── SettingsError       an environment variable has a wrong value                 exit 2
    ├── Unauthorised            no API key, or an invalid one                  HTTP 401   exit 4
    ├── Forbidden               a valid key without this permission            HTTP 403   exit 4
    ├── NotFound                it does not exist, or is not yours             HTTP 404   exit 3
    ├── Conflict                the present state does not allow it            HTTP 409   exit 5
    │   └── ModelMismatch       vectors of two models cannot be mixed          HTTP 409   exit 5
    ├── TooLarge                more bytes than the limit                      HTTP 413   exit 2
    ├── DeadlineExceeded        the caller's deadline passed                   HTTP 408   exit 8
    ├── LimitReached            a quota or rate limit; says when to try again  HTTP 429   exit 6
    │   └── QuotaExceeded       the quota of today is used up                  HTTP 429   exit 6
    ├── Unavailable             a component is down or missing; names a remedy HTTP 503   exit 7
    │   ├── DatabaseUnavailable
    │   ├── EmbeddedPostgresError
    │   └── MigrationError
    └── VisitFailed             a visit ended without content; has its ExitCode

An error's default message is its own docstring. Every decision about a failed visit (retry, host
delay, recrawl, the client's response) is read from OUTCOMES.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from types import MappingProxyType
from typing import ClassVar


class TraplineError(Exception):
    """Something went wrong."""

    http_status: ClassVar[int] = 500
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())

    @property
    def message(self) -> str:
        return str(self.args[0])


class InvalidInput(TraplineError):
    """The request cannot be understood."""

    http_status = 400
    exit_status = 2


class SettingsError(InvalidInput):
    """An environment variable has an invalid value."""


class Unauthorised(TraplineError):
    """A valid API key is needed: send it as `Authorization: Bearer <key>`."""

    http_status = 401
    exit_status = 4


class Forbidden(TraplineError):
    """This API key may not do that."""

    http_status = 403
    exit_status = 4


class NotFound(TraplineError):
    """Nothing with that name exists here."""

    http_status = 404
    exit_status = 3


class Conflict(TraplineError):
    """The present state does not allow that."""

    http_status = 409
    exit_status = 5


class ModelMismatch(Conflict):
    """Vectors of different models cannot be mixed."""


class TooLarge(TraplineError):
    """That exceeds the size limit."""

    http_status = 413
    exit_status = 2


class LimitReached(TraplineError):
    """A limit is reached; try again later."""

    http_status = 429
    exit_status = 6

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QuotaExceeded(LimitReached):
    """Today's quota is used up."""


class DeadlineExceeded(TraplineError):
    """The request did not finish before its deadline.

    `waited_for` names what it was waiting for: `organisation` is the limit of concurrent tasks,
    `gate` or `gap` is the host.
    """

    http_status = 408
    exit_status = 8

    def __init__(self, message: str | None = None, *, waited_for: str | None = None) -> None:
        super().__init__(message or "The request did not finish before its deadline.")
        self.waited_for = waited_for


class Unavailable(TraplineError):
    """A component that this needs is not available."""

    http_status = 503
    exit_status = 7


class DatabaseUnavailable(Unavailable):
    """PostgreSQL cannot be reached or lacks something; `trapline doctor` says what."""


class EmbeddedPostgresError(Unavailable):
    """The embedded PostgreSQL could not be started."""


class MigrationError(Unavailable):
    """The database's schema does not fit this version of Trapline."""


class Category(Enum):
    """The class of a visit's outcome."""

    CONTENTFUL = auto()
    SKIPPED = auto()
    TRANSIENT = auto()
    BLOCKED = auto()
    GONE = auto()
    REFUSED_BY_ROBOTS = auto()
    UNSAFE = auto()
    TOO_LARGE = auto()
    OURS = auto()


class Retry(Enum):
    """Whether the task gets another attempt."""

    NEVER = auto()
    BACKOFF = auto()
    AFTER_HINT = auto()
    """At the time that the server names (Retry-After), else with backoff."""
    IMMEDIATE_THEN_BACKOFF = auto()
    """One immediate second try, then with backoff."""


class HostDelay(Enum):
    """How the host's gap changes after such an outcome."""

    FALL = auto()
    KEEP = auto()
    RISE = auto()
    RISE_IF_FREQUENT = auto()
    """Only when most recent URLs of the host failed so: one broken URL slows down no other."""


class Recrawl(Enum):
    """When the page is visited again."""

    BY_CHANGE_RATE = auto()
    SOON = auto()
    RECHECK_THEN_FORGET = auto()
    NEVER = auto()


class ExitCode(IntEnum):
    """How a visit or a single request ended. Numbers are stored: never reuse one."""

    CONTENT = 0
    NOT_MODIFIED = 1
    FROM_DUMP = 2

    DUPLICATE_REDIRECT = 10
    OUT_OF_SCOPE = 11
    TRAP = 12
    REDIRECTED = 13

    DNS_FAILURE = 20
    CONNECTION_REFUSED = 21
    CONNECTION_RESET = 22
    CONNECT_TIMEOUT = 23
    FIRST_BYTE_TIMEOUT = 24
    TOTAL_TIMEOUT = 25
    SERVER_ERROR = 26
    TRUNCATED = 27
    RATE_LIMITED = 28
    SERVICE_UNAVAILABLE = 29
    ROBOTS_UNREACHABLE = 30
    PROXY_FAILURE = 31

    ACCESS_DENIED = 40
    CHALLENGE = 41
    TLS_FAILURE = 42
    CLIENT_ERROR = 43

    NOT_FOUND = 50
    GONE = 51
    SOFT_NOT_FOUND = 52

    ROBOTS_DISALLOWED = 60

    UNSAFE_ADDRESS = 70
    UNSUPPORTED_SCHEME = 71
    INVALID_URL = 72
    TOO_MANY_REDIRECTS = 73
    REDIRECT_LOOP = 74
    MALFORMED_RESPONSE = 75

    BODY_TOO_LARGE = 80
    DECOMPRESSED_TOO_LARGE = 81
    HEADERS_TOO_LARGE = 82
    URL_TOO_LONG = 83

    EXTRACTION_FAILED = 90
    UNSUPPORTED_TYPE = 91
    CANCELLED = 92
    STALLED = 93
    DEADLINE_PASSED = 94
    UNEXPECTED = 95
    PAGE_CRASHED = 96
    BROWSER_MISSING = 97
    ACTION_FAILED = 98


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of the table: the consequences of one exit code."""

    code: ExitCode
    category: Category
    retry: Retry
    host_delay: HostDelay
    recrawl: Recrawl
    firecrawl_code: str | None
    http_status: int
    sentence: str


def _outcomes() -> dict[ExitCode, Outcome]:
    e, c, r, d, w = ExitCode, Category, Retry, HostDelay, Recrawl
    # One row of the table is one line.
    # fmt: off
    rows = (
        (e.CONTENT, c.CONTENTFUL, r.NEVER, d.FALL, w.BY_CHANGE_RATE, None, 200, "The page was fetched."),
        (e.NOT_MODIFIED, c.CONTENTFUL, r.NEVER, d.FALL, w.BY_CHANGE_RATE, None, 200, "The server says that the page has not changed."),
        (e.FROM_DUMP, c.CONTENTFUL, r.NEVER, d.KEEP, w.NEVER, None, 200, "The page was read from an archive."),
        (e.DUPLICATE_REDIRECT, c.SKIPPED, r.NEVER, d.FALL, w.BY_CHANGE_RATE, "SCRAPE_RACED_REDIRECT_ERROR", 500, "The URL redirects to a page that this job already has."),
        (e.OUT_OF_SCOPE, c.SKIPPED, r.NEVER, d.KEEP, w.NEVER, None, 400, "The URL, or where it redirects to, is outside the job's scope."),
        (e.TRAP, c.SKIPPED, r.NEVER, d.KEEP, w.NEVER, None, 400, "The URL looks like part of an endless series."),
        (e.REDIRECTED, c.SKIPPED, r.NEVER, d.FALL, w.BY_CHANGE_RATE, None, 200, "The server redirected this request."),
        (e.DNS_FAILURE, c.TRANSIENT, r.IMMEDIATE_THEN_BACKOFF, d.KEEP, w.SOON, "SCRAPE_DNS_RESOLUTION_ERROR", 200, "The host's name does not resolve to an address."),
        (e.CONNECTION_REFUSED, c.TRANSIENT, r.IMMEDIATE_THEN_BACKOFF, d.RISE_IF_FREQUENT, w.SOON, "SCRAPE_SITE_ERROR", 500, "The server refused the connection."),
        (e.CONNECTION_RESET, c.TRANSIENT, r.IMMEDIATE_THEN_BACKOFF, d.RISE_IF_FREQUENT, w.SOON, "SCRAPE_SITE_ERROR", 500, "The server closed the connection before it answered."),
        (e.CONNECT_TIMEOUT, c.TRANSIENT, r.BACKOFF, d.RISE_IF_FREQUENT, w.SOON, "SCRAPE_TIMEOUT", 408, "The server could not be reached in time."),
        (e.FIRST_BYTE_TIMEOUT, c.TRANSIENT, r.BACKOFF, d.RISE_IF_FREQUENT, w.SOON, "SCRAPE_TIMEOUT", 408, "The server did not begin to answer in time."),
        (e.TOTAL_TIMEOUT, c.TRANSIENT, r.BACKOFF, d.RISE_IF_FREQUENT, w.SOON, "SCRAPE_TIMEOUT", 408, "The server did not finish its answer in time."),
        (e.SERVER_ERROR, c.TRANSIENT, r.BACKOFF, d.RISE_IF_FREQUENT, w.SOON, "SCRAPE_SITE_ERROR", 500, "The server answered with an error of its own (5xx)."),
        (e.TRUNCATED, c.TRANSIENT, r.BACKOFF, d.KEEP, w.SOON, "SCRAPE_SITE_ERROR", 500, "The answer ended before its announced length."),
        (e.RATE_LIMITED, c.TRANSIENT, r.AFTER_HINT, d.RISE, w.SOON, "SCRAPE_SITE_ERROR", 500, "The server asks for fewer requests (429)."),
        (e.SERVICE_UNAVAILABLE, c.TRANSIENT, r.AFTER_HINT, d.RISE, w.SOON, "SCRAPE_SITE_ERROR", 500, "The server is temporarily unavailable (503)."),
        (e.ROBOTS_UNREACHABLE, c.TRANSIENT, r.BACKOFF, d.RISE_IF_FREQUENT, w.SOON, "SCRAPE_SITE_ERROR", 500, "The site's robots.txt cannot be read because of a server error, so nothing may be fetched yet."),
        (e.PROXY_FAILURE, c.TRANSIENT, r.BACKOFF, d.KEEP, w.SOON, "SCRAPE_SITE_ERROR", 500, "The proxy could not be used."),
        (e.ACCESS_DENIED, c.BLOCKED, r.NEVER, d.KEEP, w.SOON, "SCRAPE_SITE_ERROR", 500, "The server denies access (401, 403 or 451)."),
        (e.CHALLENGE, c.BLOCKED, r.BACKOFF, d.RISE_IF_FREQUENT, w.SOON, "SCRAPE_ALL_ENGINES_FAILED", 500, "The server answers with a challenge for browsers instead of the page."),
        (e.TLS_FAILURE, c.BLOCKED, r.NEVER, d.KEEP, w.SOON, "SCRAPE_SSL_ERROR", 500, "The server's certificate or TLS set-up cannot be trusted."),
        (e.CLIENT_ERROR, c.BLOCKED, r.NEVER, d.KEEP, w.SOON, "SCRAPE_SITE_ERROR", 500, "The server rejects the request (4xx)."),
        (e.NOT_FOUND, c.GONE, r.NEVER, d.FALL, w.RECHECK_THEN_FORGET, None, 200, "The server has no such page (404)."),
        (e.GONE, c.GONE, r.NEVER, d.FALL, w.RECHECK_THEN_FORGET, None, 200, "The server says that the page is gone for good (410)."),
        (e.SOFT_NOT_FOUND, c.GONE, r.NEVER, d.FALL, w.RECHECK_THEN_FORGET, None, 200, "The server answers with a page (200), but the page says that it is not there."),
        (e.ROBOTS_DISALLOWED, c.REFUSED_BY_ROBOTS, r.NEVER, d.KEEP, w.SOON, "UNSUPPORTED_SITE", 403, "The site's robots.txt forbids this URL."),
        (e.UNSAFE_ADDRESS, c.UNSAFE, r.NEVER, d.KEEP, w.NEVER, "unsafe_domain_blocked", 403, "The URL leads to a private or reserved address; TRAPLINE_ALLOW_NETS can open ranges."),
        (e.UNSUPPORTED_SCHEME, c.UNSAFE, r.NEVER, d.KEEP, w.NEVER, "BAD_REQUEST", 400, "Only http and https URLs can be fetched."),
        (e.INVALID_URL, c.UNSAFE, r.NEVER, d.KEEP, w.NEVER, "BAD_REQUEST", 400, "That is not a valid URL."),
        (e.TOO_MANY_REDIRECTS, c.UNSAFE, r.NEVER, d.KEEP, w.SOON, "SCRAPE_SITE_ERROR", 500, "The URL redirects more often than the limit allows."),
        (e.REDIRECT_LOOP, c.UNSAFE, r.NEVER, d.KEEP, w.SOON, "SCRAPE_SITE_ERROR", 500, "The URL redirects in a circle."),
        (e.MALFORMED_RESPONSE, c.UNSAFE, r.NEVER, d.KEEP, w.SOON, "SCRAPE_SITE_ERROR", 500, "The server's answer is not valid HTTP."),
        (e.BODY_TOO_LARGE, c.TOO_LARGE, r.NEVER, d.KEEP, w.SOON, "SCRAPE_UNSUPPORTED_FILE_ERROR", 500, "The body is larger than the limit."),
        (e.DECOMPRESSED_TOO_LARGE, c.TOO_LARGE, r.NEVER, d.KEEP, w.SOON, "SCRAPE_UNSUPPORTED_FILE_ERROR", 500, "The body decompresses to more than the limit."),
        (e.HEADERS_TOO_LARGE, c.TOO_LARGE, r.NEVER, d.KEEP, w.SOON, "SCRAPE_SITE_ERROR", 500, "The answer's headers are larger than the limit."),
        (e.URL_TOO_LONG, c.TOO_LARGE, r.NEVER, d.KEEP, w.NEVER, "BAD_REQUEST", 400, "The URL is longer than the limit."),
        (e.EXTRACTION_FAILED, c.OURS, r.NEVER, d.FALL, w.BY_CHANGE_RATE, "SCRAPE_DOCUMENT_ERROR", 500, "The page was fetched, but its content could not be read."),
        (e.UNSUPPORTED_TYPE, c.OURS, r.NEVER, d.FALL, w.BY_CHANGE_RATE, "SCRAPE_UNSUPPORTED_FILE_ERROR", 500, "The page was fetched, but it is of a type that has no text."),
        (e.CANCELLED, c.OURS, r.NEVER, d.KEEP, w.SOON, None, 409, "The job was cancelled."),
        (e.STALLED, c.OURS, r.NEVER, d.KEEP, w.SOON, "SCRAPE_RETRY_LIMIT", 500, "Too many workers died while they ran this task."),
        (e.DEADLINE_PASSED, c.OURS, r.NEVER, d.KEEP, w.SOON, "SCRAPE_TIMEOUT", 408, "The task did not finish before its deadline."),
        (e.UNEXPECTED, c.OURS, r.BACKOFF, d.KEEP, w.SOON, "UNKNOWN_ERROR", 500, "Something failed inside Trapline; the log has the details."),
        (e.PAGE_CRASHED, c.OURS, r.BACKOFF, d.KEEP, w.SOON, "SCRAPE_ALL_ENGINES_FAILED", 500, "The page crashed in the browser, or took more memory or time than it may."),
        (e.BROWSER_MISSING, c.OURS, r.BACKOFF, d.KEEP, w.SOON, "SCRAPE_ALL_ENGINES_FAILED", 500, "The page needs a browser, and there is none; `trapline browser install` installs one."),
        (e.ACTION_FAILED, c.OURS, r.NEVER, d.KEEP, w.SOON, "SCRAPE_ACTION_ERROR", 500, "An action on the page failed."),
    )
    # fmt: on
    return {row[0]: Outcome(*row) for row in rows}


OUTCOMES = MappingProxyType(_outcomes())


class VisitFailed(TraplineError):
    """A visit ended without content."""

    def __init__(
        self,
        code: ExitCode,
        detail: str | None = None,
        *,
        retry_after: float | None = None,
    ) -> None:
        sentence = OUTCOMES[code].sentence
        super().__init__(f"{sentence} ({detail})" if detail else sentence)
        self.code = code
        self.retry_after = retry_after

    @property
    def outcome(self) -> Outcome:
        return OUTCOMES[self.code]
