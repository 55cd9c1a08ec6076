"""Scope of a job: which URLs it may visit, and a sentence that says why not."""

import re
from dataclasses import dataclass
from enum import Enum

from trapline.frontier.canonical_url import host_name, split_url
from trapline.frontier.patterns import Patterns
from trapline.frontier.registrable_domain import registrable_domain


class ScopeDecision(Enum):
    """Whether a URL is in a job's scope; the value is a sentence for people."""

    IN_SCOPE = "The URL is in the job's scope."
    TOO_DEEP = "The URL is more links away from the start than maxDiscoveryDepth allows."
    OTHER_SITE = "The URL is on another site, and allowExternalLinks is off."
    OTHER_SUBDOMAIN = "The URL is on another subdomain of the site, and allowSubdomains is off."
    OTHER_SECTION = "The URL is not below the path of the start URL, and crawlEntireDomain is off."
    NO_TEXT = "The URL's file type has no text to extract."
    EXCLUDED = "The URL matches a pattern of excludePaths."
    NOT_INCLUDED = "The URL matches no pattern of includePaths."
    NOFOLLOW = "The page asks not to follow this link, and the job obeys."
    HIDDEN = "The link is not visible on its page, and the job follows visible links only."

    @property
    def sentence(self) -> str:
        return self.value


_OTHER_HOSTS = frozenset({ScopeDecision.OTHER_SITE, ScopeDecision.OTHER_SUBDOMAIN})


@dataclass(frozen=True, slots=True)
class ScopeRules:
    """The options of a job that set its scope; `seed` is a canonical URL."""

    seed: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    on_full_url: bool = False
    max_depth: int | None = None
    entire_domain: bool = False
    subdomains: bool = False
    external: bool = False
    domains: tuple[str, ...] = ()
    follow_nofollow: bool = True
    follow_hidden: bool = True


# Documents that have text (pdf, docx, csv, …) are not among them.
_NO_TEXT = frozenset((
    "png", "jpg", "jpeg", "gif", "webp", "avif", "svg", "svgz", "ico", "bmp", "tif", "tiff",
    "heic", "psd", "mp3", "mp4", "mpg", "mpeg", "m4a", "m4v", "m4p", "webm", "ogg", "ogv",
    "oga", "ogm", "wav", "flac", "aac", "avi", "mov", "wmv", "mkv", "m3u8", "ts", "css", "js",
    "mjs", "map", "wasm", "woff", "woff2", "ttf", "otf", "eot", "zip", "gz", "tgz", "bz2", "xz",
    "zst", "7z", "rar", "tar", "jar", "whl", "deb", "rpm", "apk", "dmg", "iso", "exe", "msi",
    "bin", "dll", "img",
))  # fmt: skip
# An origin that needs no parser: no port, no user, no capitals, no escapes.
_PLAIN_ORIGIN = re.compile(r"https?://((?:[a-z0-9-]{1,63}\.)++[a-z][a-z0-9-]{0,62})")
_LONGEST_ORIGIN = 8 + 253
_MOST_ORIGINS = 10_000
_FILE = re.compile(
    r"\.(?:html?|xhtml|shtml|php[0-9]?|aspx?|jspx?|cgi|cfm|pl|do|md|rst|txt|xml|pdf)\Z",
    re.IGNORECASE,
)


class Scope:
    """A job's scope, compiled once. InvalidInput if a pattern cannot be used."""

    def __init__(self, rules: ScopeRules) -> None:
        self.rules = rules
        _, host, path = split_url(rules.seed)
        self._host = host
        self._site = host.removeprefix("www.")
        self._section = section_of(path)
        self._domains = tuple(domain.lower().strip(".") for domain in rules.domains)
        self._include = Patterns(rules.include)
        self._exclude = Patterns(rules.exclude)
        # Answers of `is_external`, by the origin of the link.
        self._external: dict[str, bool] = {}

    def decide(self, url: str, depth: int = 0) -> ScopeDecision:
        """Decide on a canonical URL that is `depth` links away from the start."""
        if url == self.rules.seed:
            return ScopeDecision.IN_SCOPE
        if self.rules.max_depth is not None and depth > self.rules.max_depth:
            return ScopeDecision.TOO_DEEP
        _, host, path = split_url(url.partition("?")[0])
        elsewhere = self._site_decision(host, path)
        if elsewhere is not None:
            return elsewhere
        if path.rpartition(".")[2].lower() in _NO_TEXT:
            return ScopeDecision.NO_TEXT
        return self._match(url if self.rules.on_full_url else path)

    def is_external(self, link: str) -> bool:
        """Whether a link leads to another site, by its origin alone and without parsing.

        False where that needs a parser.
        """
        end = link.find("/", len("https://"), _LONGEST_ORIGIN)
        if end < 0:
            return False
        origin = link[:end]
        external = self._external.get(origin)
        if external is None:
            if len(self._external) >= _MOST_ORIGINS:
                self._external.clear()
            plain = _PLAIN_ORIGIN.fullmatch(origin)
            external = plain is not None and self._site_decision(plain[1], "/") in _OTHER_HOSTS
            self._external[origin] = external
        return external

    def decide_link(self, *, nofollow: bool, hidden: bool) -> ScopeDecision:
        """Decide on a link by its attributes, before its URL is parsed."""
        if nofollow and not self.rules.follow_nofollow:
            return ScopeDecision.NOFOLLOW
        if hidden and not self.rules.follow_hidden:
            return ScopeDecision.HIDDEN
        return ScopeDecision.IN_SCOPE

    def explain(self, url: str, depth: int = 0) -> str:
        """The sentence of the decision on a URL."""
        return self.reason(self.decide(url, depth), url)

    def reason(self, decision: ScopeDecision, url: str) -> str:
        """The decision's sentence, with the pattern that decided."""
        if decision is ScopeDecision.EXCLUDED:
            text = url if self.rules.on_full_url else split_url(url).path.partition("?")[0]
            return f"{decision.sentence} ({self._exclude.first_found(text)})"
        return decision.sentence

    def _site_decision(self, host: str, path: str) -> ScopeDecision | None:
        if host == self._host or host.removeprefix("www.") == self._site:
            return None if self._in_section(path) else ScopeDecision.OTHER_SECTION
        if self.rules.external or self._is_allowed(host):
            return None
        if not self._is_subdomain(host):
            return ScopeDecision.OTHER_SITE
        return None if self.rules.subdomains else ScopeDecision.OTHER_SUBDOMAIN

    def _is_allowed(self, host: str) -> bool:
        name = host_name(host)
        return any(
            domain in (host, name) or name.endswith(f".{domain}") for domain in self._domains
        )

    def _in_section(self, path: str) -> bool:
        # `/docs` has `/docs/x` below it, but not `/docs-old`.
        section = self._section
        return self.rules.entire_domain or path.startswith(section) or path == section[:-1]

    def _is_subdomain(self, host: str) -> bool:
        """Two ports of one name are not one site, but two names of one domain are."""
        seed, name = host_name(self._host), host_name(host)
        # Most other sites have another top-level domain: they need no look-up in the suffix list.
        if seed == name or seed.rpartition(".")[2] != name.rpartition(".")[2]:
            return False
        return registrable_domain(seed) == registrable_domain(name)

    def _match(self, text: str) -> ScopeDecision:
        if self._exclude.found_in(text):
            return ScopeDecision.EXCLUDED
        if self._include and not self._include.found_in(text):
            return ScopeDecision.NOT_INCLUDED
        return ScopeDecision.IN_SCOPE


def section_of(path: str) -> str:
    """The directory that a start path stands for: `/a/` of `/a/index.html`, `/a/b/` of `/a/b`."""
    path = path.partition("?")[0]
    if path.endswith("/") or _FILE.search(path):
        return path[: path.rfind("/") + 1]
    return f"{path}/"
