"""One page, many spellings of its address; and addresses that are none."""

from collections.abc import Iterator

from tests.site.page import Page
from tests.site.sheet import sheet

BASE = "/hostile/url/"
_TRACKING = (
    "utm_source=letter",
    "utm_campaign=spring&utm_medium=mail",
    "gclid=abc123",
    "fbclid=xyz",
)

NONSENSE = (
    "http://",
    "http://[::",
    "http://exa mple/",
    "http:///three-slashes",
    "//",
    "javascript:void(0)",
    "mailto:walker@trapline.test",
    "tel:+441632960417",
    "data:text/plain,hello",
    "file:///etc/passwd",
    "ftp://trapline.test/",
    "about:blank",
    "\x00\x01",
    "http://trapline.test:99999/",
    "http://a.b-.c_d/..%2f..",
    "http://xn--/",
)
"""Hrefs that no crawler can or should follow."""


def pages(port: int) -> Iterator[Page]:
    yield sheet(f"{BASE}same", "The page with many names")
    yield sheet(f"{BASE}spellings", "Spellings", links=spellings(port))
    yield sheet(f"{BASE}similar", "Similar", links=similar(port))
    yield sheet(f"{BASE}nonsense", "Nonsense", links=NONSENSE)
    yield sheet(f"{BASE}long", "Long", links=[f"{BASE}same?q={'x' * 65_536}"])
    yield sheet(f"{BASE}folder/", "A folder")
    yield sheet(f"{BASE}folder", "A folder, without its slash")
    yield sheet(f"{BASE}folder/index.html", "A folder, by its index")
    yield sheet(f"{BASE}caf%C3%A9", "Coffee", links=[f"{BASE}café", f"{BASE}caf%c3%a9"])


def spellings(port: int) -> list[str]:
    """Return hrefs that all mean `/hostile/url/same` once they are in canonical form."""
    same = f"{BASE}same"
    return [
        same,
        f"{same}#part",
        f"{same}#",
        "same",
        "./same",
        "../url/same",
        "/hostile/x/../url/./same",
        f"HTTP://TRAPLINE.TEST:{port}{same}",
        f"//trapline.test:{port}{same}",
        f"  {same}\n",
        "/hostile/u\trl/same",
        *(f"{same}?{query}" for query in _TRACKING),
    ]


def similar(port: int) -> list[str]:
    """Return hrefs that `deduplicateSimilarURLs` takes for one page, and the canonical form does not."""
    return [
        f"http://trapline.test:{port}{BASE}folder/",
        f"http://trapline.test:{port}{BASE}folder",
        f"http://trapline.test:{port}{BASE}folder/index.html",
        f"http://www.trapline.test:{port}{BASE}folder/",
    ]
