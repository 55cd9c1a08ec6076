"""HSTS (RFC 6797): hosts that must be visited by https, in memory."""

import re
from collections import OrderedDict
from ipaddress import ip_address

_MAX_AGE = re.compile(r'(?:^|;)\s*max-age\s*=\s*"?(\d{1,12})"?\s*(?:;|$)', re.IGNORECASE)
_SUBDOMAINS = re.compile(r"(?:^|;)\s*includeSubDomains\s*(?:;|$)", re.IGNORECASE)
_MOST_SECONDS = 2 * 365 * 24 * 3600


class StrictHosts:
    """LRU cache of HSTS hosts."""

    def __init__(self, most: int = 50_000) -> None:
        self._most = most
        self._hosts: OrderedDict[str, tuple[float, bool]] = OrderedDict()

    def note(self, host: str, header: str, now: float) -> None:
        """Store the policy of a host, from a response over trusted TLS."""
        age = _MAX_AGE.search(header)
        if age is None or _is_literal(host):
            return
        self._hosts.pop(host, None)
        seconds = min(int(age[1]), _MOST_SECONDS)
        if seconds == 0:
            return
        self._hosts[host] = (now + seconds, _SUBDOMAINS.search(header) is not None)
        if len(self._hosts) > self._most:
            self._hosts.popitem(last=False)

    def covers(self, host: str, now: float) -> bool:
        if not self._hosts:
            return False
        own = self._hosts.get(host)
        if own is not None and own[0] > now:
            return True
        parts = host.split(".")
        parents = (".".join(parts[start:]) for start in range(1, len(parts)))
        return any(
            found is not None and found[1] and found[0] > now
            for found in map(self._hosts.get, parents)
        )


def _is_literal(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
