"""Messages of the job log: the steps of a crawl that a person may want to read later."""

from collections.abc import Sequence
from typing import Final

from trapline.errors import OUTCOMES, Category, ExitCode
from trapline.frontier.link_filter import LinkDecision
from trapline.frontier.robots import RobotsPolicy
from trapline.model import Fetched
from trapline.pipeline.crawl.robots_cache import OriginRobots
from trapline.queue.finish import Attempt
from trapline.queue.job_log import Level, Note
from trapline.queue.retry_policy import TaskOutcome

ROBOTS: Final = "robots"
TRAP: Final = "trap"
SITEMAP: Final = "sitemap"
FETCH: Final = "fetch"
SCOPE: Final = "scope"
_STEPS: Final = {ExitCode.ROBOTS_DISALLOWED: ROBOTS, ExitCode.TRAP: TRAP}
_MAX_PROBLEMS: Final = 20


def crawl_started(url: str, robots: OriginRobots | None, robots_agent: str) -> list[Note]:
    """Report the start of a crawl, and what robots.txt asks for."""
    start = Note("start", f"The crawl starts at {url}.", context={"url": url})
    if robots is None:
        message = "The job ignores robots.txt."
        return [start, Note(ROBOTS, message, Level.WARNING)]
    match robots.policy:
        case RobotsPolicy.ALLOW_ALL:
            note = Note(ROBOTS, "The site has no robots.txt: every page may be visited.")
        case RobotsPolicy.DISALLOW_ALL:
            reason = OUTCOMES[robots.exit_code].sentence
            message = f"robots.txt cannot be read, so no page may be visited yet: {reason}"
            note = Note(ROBOTS, message, Level.ERROR)
        case RobotsPolicy.READ | RobotsPolicy.KEEP_LAST:
            delay = robots.access(robots_agent).crawl_delay
            context = {"crawl_delay": delay, "sitemaps": list(robots.robots.sitemaps)}
            asks = f" It asks for {delay:g} s between requests." if delay else ""
            note = Note(ROBOTS, f"robots.txt was read.{asks}", context=context)
    return [start, note]


def sitemap_read(url: str, entries: int, queued: int, problems: Sequence[str]) -> Note:
    context: dict[str, object] = {"sitemap": url, "entries": entries, "queued": queued}
    message = f"{url} was read: {entries} entries, {queued} in scope."
    if not problems:
        return Note(SITEMAP, message, context=context)
    context["problems"] = list(problems[:_MAX_PROBLEMS])
    return Note(SITEMAP, f"{message} {problems[0]}", Level.WARNING, context)


def sitemap_failed(url: str, fetched: Fetched) -> Note:
    message = f"{url} cannot be read: {fetched.message}"
    return Note(SITEMAP, message, Level.WARNING, {"sitemap": url, "code": fetched.exit_code})


def link_refused(decision: LinkDecision, page: str) -> list[Note]:
    """Report a link that is in scope but not followed."""
    step = None if decision.refusal is None else _STEPS.get(decision.refusal)
    if step is None or decision.refusal is None:
        return []
    message = decision.reason or OUTCOMES[decision.refusal].sentence
    return [Note(step, message, context={"url": decision.url, "found_on": page})]


def visit_ended(attempt: Attempt, url: str, found_on: str | None) -> list[Note]:
    """Report how a visit ended, unless it ended well."""
    if attempt.code is None or attempt.error is None:
        return []
    context = {
        "url": url,
        "found_on": found_on,
        "code": attempt.code.name.lower(),
        "attempt": attempt.task.attempt,
    }
    match attempt.outcome:
        case TaskOutcome.FAILED:
            return [Note(FETCH, attempt.error, _level(attempt.code), context)]
        case TaskOutcome.RETRY:
            message = f"{attempt.error} It will be retried."
            return [Note(FETCH, message, Level.INFO, context)]
        case TaskOutcome.SKIPPED:
            return [Note(_STEPS.get(attempt.code, SCOPE), attempt.error, context=context)]
        case _:
            return []


def _level(code: ExitCode) -> Level:
    return Level.ERROR if OUTCOMES[code].category is Category.OURS else Level.WARNING
