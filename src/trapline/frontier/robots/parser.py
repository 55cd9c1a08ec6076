"""Parser of robots.txt: groups of rules for agents, delays and sitemaps."""

import math
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from enum import Enum, auto

import msgspec

from trapline.frontier.robots.rules import Access, Rule, comparable_pattern

MAX_ROBOTS_BYTES = 512_000
"""RFC 9309 asks for at least 500 KiB."""

MAX_SITEMAPS = 1000
_LONGEST_DELAY = 86_400.0
EVERYONE = "*"

# Letters, `-` and `_` by the RFC; digits and dots because agents have them in practice.
_TOKEN = re.compile(r"[A-Za-z0-9_.-]+")
_COMPATIBLE = re.compile(r"compatible;\s*+([A-Za-z0-9_.-]+)")
_NUMBER = re.compile(rb"[0-9]*\.?[0-9]+")
_RATE = re.compile(rb"([0-9]+)\s*/\s*([0-9]+)\s*([smh]?)")
_RATE_UNITS = {b"": 1, b"s": 1, b"m": 60, b"h": 3600}


class _Field(Enum):
    AGENT = auto()
    ALLOW = auto()
    DISALLOW = auto()
    DELAY = auto()
    RATE = auto()
    SITEMAP = auto()


# With the misspellings that search engines accept.
_FIELDS = {
    b"user-agent": _Field.AGENT,
    b"useragent": _Field.AGENT,
    b"user agent": _Field.AGENT,
    b"allow": _Field.ALLOW,
    b"disallow": _Field.DISALLOW,
    b"dissallow": _Field.DISALLOW,
    b"dissalow": _Field.DISALLOW,
    b"disalow": _Field.DISALLOW,
    b"diasllow": _Field.DISALLOW,
    b"disallaw": _Field.DISALLOW,
    b"crawl-delay": _Field.DELAY,
    b"crawldelay": _Field.DELAY,
    b"request-rate": _Field.RATE,
    b"sitemap": _Field.SITEMAP,
    b"site-map": _Field.SITEMAP,
}


class Group(msgspec.Struct):
    """Agents, and the rules that hold for each of them."""

    agents: list[str] = []
    rules: list[Rule] = []


class Robots(msgspec.Struct):
    """A robots.txt, parsed."""

    groups: list[Group] = []
    delays: dict[str, float] = {}
    sitemaps: list[str] = []
    is_markup: bool = False
    is_cut: bool = False

    def access(self, user_agent: str) -> Access:
        """The access of an agent: by the groups that name it, else by those for everyone."""
        token = product_token(user_agent)
        named = [group for group in self.groups if token in group.agents]
        if not named:
            token = EVERYONE
            named = [group for group in self.groups if EVERYONE in group.agents]
        rules = (rule for group in named for rule in group.rules)
        return Access(rules, self.delays.get(token))


def product_token(user_agent: str) -> str:
    """The product token of a user agent, in lower case."""
    found = _TOKEN.match(user_agent.strip())
    name = found[0].lower() if found else ""
    if name == "mozilla" and (disguised := _COMPATIBLE.search(user_agent)):
        return disguised[1].lower()
    return name


def parse_robots(body: bytes) -> Robots:
    """Parse a robots.txt; nothing in it is an error."""
    text = _plain(body)
    if text.lstrip().startswith(b"<"):
        return Robots(is_markup=True)
    reader = _Reader(Robots(is_cut=len(body) > MAX_ROBOTS_BYTES))
    for line in text.splitlines():
        reader.read(line)
    return reader.robots


def _plain(body: bytes) -> bytes:
    """The first 500 KiB as UTF-8, without a byte order mark and without half a line at the end."""
    text = body[:MAX_ROBOTS_BYTES]
    if len(body) > MAX_ROBOTS_BYTES:
        text = text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]
    if text.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return text.decode("utf-16", errors="replace").encode()
    return text.removeprefix(BOM_UTF8)


class _Reader:
    """Takes the file line by line; a group is open for more agents until its first rule."""

    def __init__(self, robots: Robots) -> None:
        self.robots = robots
        self._group: Group | None = None
        self._open = False

    def read(self, line: bytes) -> None:
        field, value = _field(line)
        match field:
            case _Field.AGENT:
                self._agent(value)
            case _Field.ALLOW | _Field.DISALLOW:
                self._rule(field is _Field.ALLOW, value)
            case _Field.DELAY | _Field.RATE:
                self._delay(_seconds(value) if field is _Field.DELAY else _seconds_each(value))
            case _Field.SITEMAP if value and len(self.robots.sitemaps) < MAX_SITEMAPS:
                self.robots.sitemaps.append(value.decode(errors="replace"))
            # Other lines, sitemaps among them, neither end a group nor begin one.

    def _agent(self, value: bytes) -> None:
        if self._group is None or not self._open:
            self._group = Group()
            self.robots.groups.append(self._group)
            self._open = True
        name = value.decode("latin-1")
        self._group.agents.append(EVERYONE if name.startswith(EVERYONE) else product_token(name))

    def _rule(self, allow: bool, value: bytes) -> None:
        if self._group is None:
            return
        self._open = False
        if value:
            self._group.rules.append(Rule(allow, comparable_pattern(value)))

    def _delay(self, seconds: float | None) -> None:
        if self._group is None or seconds is None:
            return
        for agent in self._group.agents:
            self.robots.delays[agent] = max(seconds, self.robots.delays.get(agent, 0.0))


def _field(line: bytes) -> tuple[_Field | None, bytes]:
    line = line.partition(b"#")[0].strip()
    key, colon, value = line.partition(b":")
    if not colon:
        # "Disallow /" lacks its colon, and is understood.
        key, _, value = line.partition(b" ")
        if len(value.split()) != 1:
            return None, b""
    return _FIELDS.get(key.strip().lower()), value.strip()


def _seconds(value: bytes) -> float | None:
    number = _NUMBER.match(value)
    if number is None:
        return None
    seconds = float(number[0])
    return min(seconds, _LONGEST_DELAY) if math.isfinite(seconds) else None


def _seconds_each(value: bytes) -> float | None:
    """`Request-rate: 1/5` is one document in five seconds."""
    rate = _RATE.match(value)
    if rate is None or not (documents := int(rate[1][:9])):
        return None
    return min(int(rate[2][:9]) * _RATE_UNITS[rate[3]] / documents, _LONGEST_DELAY)
