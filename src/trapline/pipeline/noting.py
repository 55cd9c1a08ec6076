"""What a job's log says of its steps: only what a person wants to read later."""

from collections.abc import Sequence
from typing import Final

from trapline.errors import OUTCOMES, Category, ExitCode
from trapline.frontier.judge import Judgement
from trapline.frontier.robots import RobotsPolicy
from trapline.model import Fetched
from trapline.pipeline.crawls import Crawl
from trapline.pipeline.robots import OriginRobots
from trapline.queue.finishing import Attempt
from trapline.queue.logbook import Level, Note
from trapline.queue.retries import Verdict

ROBOTS: Final = "robots"
TRAP: Final = "trap"
SITEMAP: Final = "sitemap"
FETCH: Final = "fetch"
SCOPE: Final = "scope"
_STEPS: Final = {ExitCode.ROBOTS_DISALLOWED: ROBOTS, ExitCode.TRAP: TRAP}
_MOST_PROBLEMS: Final = 20


def beginning(url: str, found: OriginRobots | None, crawl: Crawl) -> list[Note]:
    """Say that a crawl has begun, and what robots.txt wants of it."""
    start = Note("start", f"The crawl begins at {url}.", context={"url": url})
    if found is None:
        message = "robots.txt is not obeyed, as the job asks."
        return [start, Note(ROBOTS, message, Level.WARNING)]
    match found.policy:
        case RobotsPolicy.ALLOW_ALL:
            note = Note(ROBOTS, "There is no robots.txt: everything may be visited.")
        case RobotsPolicy.DISALLOW_ALL:
            reason = OUTCOMES[found.exit_code].sentence
            message = f"robots.txt cannot be read, so nothing may be visited yet: {reason}"
            note = Note(ROBOTS, message, Level.ERROR)
        case RobotsPolicy.READ | RobotsPolicy.KEEP_LAST:
            delay = found.access(crawl.robots_agent).crawl_delay
            context = {"crawl_delay": delay, "sitemaps": list(found.robots.sitemaps)}
            asks = f" It asks for {delay:g} s between requests." if delay else ""
            note = Note(ROBOTS, f"robots.txt was read.{asks}", context=context)
    return [start, note]


def sitemap(url: str, entries: int, queued: int, problems: Sequence[str]) -> Note:
    context: dict[str, object] = {"sitemap": url, "entries": entries, "queued": queued}
    message = f"{url} was read: {entries} entries, {queued} of them in scope."
    if not problems:
        return Note(SITEMAP, message, context=context)
    context["problems"] = list(problems[:_MOST_PROBLEMS])
    return Note(SITEMAP, f"{message} {problems[0]}", Level.WARNING, context)


def no_sitemap(url: str, fetched: Fetched) -> Note:
    message = f"{url} cannot be read: {fetched.message}"
    return Note(SITEMAP, message, Level.WARNING, {"sitemap": url, "code": fetched.exit_code})


def refused(judged: Judgement, page: str) -> list[Note]:
    """Say which links are not followed although they are in scope."""
    step = None if judged.refusal is None else _STEPS.get(judged.refusal)
    if step is None or judged.refusal is None:
        return []
    message = judged.reason or OUTCOMES[judged.refusal].sentence
    return [Note(step, message, context={"url": judged.url, "found_on": page})]


def attempted(attempt: Attempt, url: str, found_on: str | None) -> list[Note]:
    """Say how a visit ended, if not well."""
    if attempt.code is None or attempt.error is None:
        return []
    context = {
        "url": url,
        "found_on": found_on,
        "code": attempt.code.name.lower(),
        "attempt": attempt.task.attempt,
    }
    match attempt.verdict:
        case Verdict.FAILED:
            return [Note(FETCH, attempt.error, _level(attempt.code), context)]
        case Verdict.RETRY:
            message = f"{attempt.error} It is tried again."
            return [Note(FETCH, message, Level.INFO, context)]
        case Verdict.SKIPPED:
            return [Note(_STEPS.get(attempt.code, SCOPE), attempt.error, context=context)]
        case _:
            return []


def _level(code: ExitCode) -> Level:
    return Level.ERROR if OUTCOMES[code].category is Category.OURS else Level.WARNING
