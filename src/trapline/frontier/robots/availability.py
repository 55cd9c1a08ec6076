"""Availability of robots.txt: the rules that hold if it cannot be fetched (RFC 9309, 2.3.1)."""

from datetime import timedelta
from enum import Enum
from http import HTTPStatus

MAX_ROBOTS_REDIRECTS = 5
CACHE_TIME = timedelta(minutes=30)
RETRY_TIME = timedelta(minutes=1)
_GIVEN_UP_AFTER = timedelta(days=30)


class RobotsPolicy(Enum):
    """The policy that follows from the response for robots.txt."""

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
    """The policy by the status after redirects; None means no response.

    `has_last`: there is an earlier copy. `unreachable_for`: how long there has been no response.
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
