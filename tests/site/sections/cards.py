"""Short pages made from tables: trails, glossary, events, and the jobs on offer."""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.site.compose import compose
from tests.site.content import read, table
from tests.site.page import Page
from tests.site.prose import markdown
from tests.site.sections.listing import Entry, listing, paginated

_TRAILS_PER_PAGE = 12


def pages() -> Iterator[Page]:
    yield from _trails()
    yield from _glossary()
    yield from _events()
    yield from _careers()


def _card(rows: Sequence[dict[str, Any]], at: int, base: str, parent: str, **options: Any) -> Page:
    row = rows[at]
    near = [rows[place] for place in (at - 1, at + 1) if 0 <= place < len(rows)]
    options = {"kind": "article", "facts": ()} | options
    return compose(
        "card",
        f"{base}{row['slug']}/",
        title=row["name"],
        summary=row["text"].partition(".")[0] + ".",
        text=markdown(row["text"]),
        parent=parent,
        parent_href=base,
        neighbours=[(f"{base}{other['slug']}/", other["name"]) for other in near],
        **options,
    )


def _trails() -> Iterator[Page]:
    rows = table("trails")
    entries = [
        Entry(f"/trails/{r['slug']}/", r["name"], r["text"], f"{r['km']} km, {r['grade']}")
        for r in rows
    ]
    yield from paginated(
        "/trails/",
        "Trails",
        entries,
        _TRAILS_PER_PAGE,
        summary="Every path that we keep.",
        frame="blog",
    )
    for at, row in enumerate(rows):
        facts = [
            ("Length", f"{row['km']} km"),
            ("Ascent", f"{row['ascent']} m"),
            ("Grade", row["grade"]),
        ]
        yield _card(rows, at, "/trails/", "Trails", facts=facts, frame="blog")


def _glossary() -> Iterator[Page]:
    rows = table("glossary")
    entries = [Entry(f"/glossary/{r['slug']}/", r["name"], r["text"]) for r in rows]
    yield listing("/glossary/", "Glossary", entries, summary="Words of the hill.", frame="table")
    for at in range(len(rows)):
        yield _card(rows, at, "/glossary/", "Glossary", frame="table")


def _events() -> Iterator[Page]:
    rows = sorted(table("events"), key=lambda row: row["date"])
    entries = [
        Entry(f"/events/{r['slug']}/", r["name"], r["text"], f"{r['date']}, {r['place']}")
        for r in rows
    ]
    yield listing("/events/", "Events", entries, summary="What happens when, and where.")
    for at, row in enumerate(rows):
        facts = [("When", row["date"].isoformat()), ("Where", row["place"])]
        yield _card(rows, at, "/events/", "Events", kind="service", facts=facts)


def _careers() -> Iterator[Page]:
    offers = sorted(read("careers"), key=lambda offer: offer.order)
    entries = [Entry(f"/careers/{o.slug}/", o.title, o.summary) for o in offers]
    yield listing("/careers/", "Work with us", entries, summary="Three places are free.")
    for offer in offers:
        yield compose(
            "plain",
            f"/careers/{offer.slug}/",
            kind="service",
            title=offer.title,
            summary=offer.summary,
            text=offer.prose,
            groups=(),
        )
