"""What follows when robots.txt itself cannot be had: RFC 9309, section 2.3.1."""

from datetime import timedelta
from enum import Enum
from http import HTTPStatus

MAX_ROBOTS_REDIRECTS = 5
CACHE_TIME = timedelta(minutes=30)
RETRY_TIME = timedelta(minutes=1)
_GIVEN_UP_AFTER = timedelta(days=30)


class RobotsPolicy(Enum):
    """What an answer for robots.txt means."""

    READ = "The file is there: its rules hold."
    KEEP_LAST = "The rules that were read last still hold."
    ALLOW_ALL = "There is no robots.txt, so nothing is forbidden."
    DISALLOW_ALL = "robots.txt cannot be reached, so nothing may be fetched for now."

    @property
    def sentence(self) -> str:
        return self.value

    @property
    def ask_again_after(self) -> timedelta:
        return RETRY_TIME if self is RobotsPolicy.DISALLOW_ALL else CACHE_TIME


def policy_for(
    status: int | None,
    *,
    redirects: int = 0,
    has_last: bool = False,
    unreachable_for: timedelta = timedelta(),
) -> RobotsPolicy:
    """Decide by the last status of the way; None means that no answer came.

    `has_last` says that an earlier copy is at hand, `unreachable_for` how long this has been so.
    """
    if redirects > MAX_ROBOTS_REDIRECTS:
        return RobotsPolicy.ALLOW_ALL
    if status == HTTPStatus.NOT_MODIFIED and has_last:
        return RobotsPolicy.KEEP_LAST
    if status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _unreachable(has_last=has_last, unreachable_for=unreachable_for)
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return RobotsPolicy.READ
    return RobotsPolicy.ALLOW_ALL


def _unreachable(*, has_last: bool, unreachable_for: timedelta) -> RobotsPolicy:
    if has_last:
        return RobotsPolicy.KEEP_LAST
    if unreachable_for >= _GIVEN_UP_AFTER:
        return RobotsPolicy.ALLOW_ALL
    return RobotsPolicy.DISALLOW_ALL
