"""Where a site's sitemap may be when its robots.txt names none."""

from trapline.frontier.canonical_url import split_url

MAX_INDEX_DEPTH = 3
"""How deep an index may name an index. The protocol allows one level; sites have two."""

_PLACES = (
    "/sitemap.xml",
    "/sitemap_index.xml",
    "/sitemap-index.xml",
    "/wp-sitemap.xml",
    "/sitemap.xml.gz",
    "/sitemap.txt",
)


def likely_sitemaps(url: str) -> tuple[str, ...]:
    """The usual places on the host of a canonical URL, the likeliest first."""
    scheme, host, _ = split_url(url)
    return tuple(f"{scheme}://{host}{place}" for place in _PLACES)
