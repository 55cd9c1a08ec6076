"""Landing pages of services: hero, sections, testimonials, calls to action."""

from collections.abc import Iterator

from tests.site.compose import compose
from tests.site.content import read
from tests.site.page import Page
from tests.site.sections.listing import Entry, listing


def pages() -> Iterator[Page]:
    services = sorted(read("services"), key=lambda service: service.order)
    entries = [Entry(f"/services/{s.slug}/", s.title, s.summary, s.meta["price"]) for s in services]
    yield listing("/services/", "Services", entries, summary="What we do besides making.")
    for service in services:
        yield compose(
            "service",
            f"/services/{service.slug}/",
            kind="service",
            title=service.title,
            summary=service.summary,
            frame="modern" if service.order % 2 else "blog",
            text=service.prose,
            price=service.meta["price"],
            others=[other for other in services if other is not service][:3],
        )
