"""Rules for robots, as data: robots.txt is written from them, and the truth reads them directly."""

import re
from dataclasses import dataclass, field
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Group:
    """What one or more user agents may do. `lines` are (allow or disallow, pattern)."""

    agents: tuple[str, ...]
    lines: tuple[tuple[str, str], ...] = ()
    crawl_delay: float | None = None

    def text(self) -> str:
        lines = [f"User-agent: {agent}" for agent in self.agents]
        lines += [f"{verb.capitalize()}: {pattern}" for verb, pattern in self.lines]
        if self.crawl_delay is not None:
            lines.append(f"Crawl-delay: {self.crawl_delay:g}")
        return "\n".join(lines)

    def allows(self, target: str) -> bool:
        """The longest matching pattern decides; of two equally long ones, the one that allows."""
        matching = [
            (len(p), verb == "allow") for verb, p in self.lines if p and _matches(p, target)
        ]
        return max(matching, default=(0, True))[1]


@dataclass(frozen=True, slots=True)
class Rules:
    """All groups of one host, and the sitemaps that its robots.txt names."""

    groups: tuple[Group, ...] = ()
    sitemaps: tuple[str, ...] = field(default=())

    def group(self, agent: str) -> Group:
        named = [group for group in self.groups if agent.lower() in map(str.lower, group.agents)]
        return (named or [g for g in self.groups if "*" in g.agents] or [Group(("*",))])[0]

    def allows(self, agent: str, target: str) -> bool:
        return target == "/robots.txt" or self.group(agent).allows(target)

    def text(self, origin: str) -> str:
        parts = [group.text() for group in self.groups]
        parts += [f"Sitemap: {origin}{target}" for target in self.sitemaps]
        return "\n\n".join(parts) + "\n"


OPEN = Rules((Group(("*",), (("disallow", ""),)),))
"""Everything may be fetched by everyone."""


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> re.Pattern[str]:
    anchored = pattern.endswith("$")
    body = ".*".join(map(re.escape, pattern.removesuffix("$").split("*")))
    return re.compile(body + ("$" if anchored else ""))


def _matches(pattern: str, target: str) -> bool:
    return _pattern(pattern).match(target) is not None
