"""The other names that this server answers to."""

from collections.abc import Iterator

from tests.site import hostile, sitemaps
from tests.site.host import Family, Host, PageFor
from tests.site.page import Page
from tests.site.redirects import hop
from tests.site.rules import Group, Rules
from tests.site.sheet import sheet

MANY = "*.many.test"
"""Any name below many.test is a host of its own with endlessly many small pages, for load."""
PAGES_PER_HOST = 1000
_LINKS = 10


def others(port: int, main: Host) -> Iterator[Host]:
    """Yield every host but the main one; `robots.txt` is added to all of them by the caller."""
    # The same pages under another name, as sites without a redirect from www have it.
    yield Host("www.trapline.test", pages=main.pages, families=main.families, rules=main.rules)
    yield Host("old.trapline.test", families=[Family("/", _moved(port))])
    yield _docs(port)
    yield _other(port)
    yield _hostile(main)
    yield sitemaps.difficult_host()
    yield Host(MANY, families=[Family("/", _one_of_many)])


def _moved(port: int) -> PageFor:
    return lambda target: hop(target, f"http://trapline.test:{port}{target}", 301)


def _docs(port: int) -> Host:
    """A subdomain that links back."""
    host = Host("docs.trapline.test")
    chapters = [f"/chapter/{number}" for number in range(1, 6)]
    host.add([sheet("/", "Documents", links=[*chapters, f"http://trapline.test:{port}/"])])
    host.add(sheet(target, f"Chapter {target[-1]}", links=["/"]) for target in chapters)
    return host


def _other(port: int) -> Host:
    """A stranger, with rules and a delay of its own."""
    rules = Rules((Group(("*",), (("disallow", "/secret/"),), crawl_delay=0.5),))
    host = Host("other.test", rules=rules)
    places = [f"/field/{number}" for number in range(1, 9)]
    home = f"http://trapline.test:{port}"
    host.add([sheet("/", "Otherfield", links=[*places, "/secret/", f"{home}/journal/"])])
    host.add(sheet(target, f"Field {target[-1]}", links=["/"]) for target in places)
    host.add([sheet("/secret/", "Secret"), hop("/back", f"{home}/hostile/redirect/end")])
    return host


def _hostile(main: Host) -> Host:
    """The hostile pages of the main host, without a robots.txt that keeps polite crawlers out."""
    host = Host("hostile.test", families=hostile.families())
    host.add(page for page in main.pages.values() if page.target.startswith(hostile.BASE))
    host.add([hop("/", hostile.BASE, 302)])
    return host


def _one_of_many(target: str) -> Page | None:
    """Page N of a host links to the next ten; all are reachable from `/`, and there is an end."""
    if target != "/" and not target[1:].isdigit():
        return None
    number = 0 if target == "/" else int(target[1:])
    if number >= PAGES_PER_HOST:
        return None
    first = number * _LINKS + 1
    links = [f"/{n}" for n in range(first, min(first + _LINKS, PAGES_PER_HOST))]
    return sheet(target, f"Page {number}", f"Page number {number} of a thousand alike.", links)
