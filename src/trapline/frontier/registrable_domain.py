"""Registrable domain of a host, by the public suffix list of the wheel."""

import re
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

_IPV4 = re.compile(r"[0-9]+(?:\.[0-9]+){3}")


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    # Loaded on first use: it takes 0.1 s, and most jobs stay on one host.
    return PublicSuffixList()


@lru_cache(maxsize=4096)
def registrable_domain(name: str) -> str:
    """`example.co.uk` for `a.b.example.co.uk`; an address or a bare suffix is returned unchanged."""
    if name.startswith("[") or _IPV4.fullmatch(name):
        return name
    return _suffixes().privatesuffix(name) or name
