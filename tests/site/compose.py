"""Makes a row of the page table from a template."""

from datetime import datetime
from typing import Any

from tests.site.layout import render
from tests.site.page import EPOCH, Hop, Link, Page, Redirect

FRAMES = ("modern", "blog", "table")
"""Three ways to build what surrounds the content: semantic elements, nested divs with classes, tables."""


def compose(
    template: str,
    target: str,
    *,
    kind: str,
    title: str,
    summary: str = "",
    date: datetime = EPOCH,
    frame: str = "modern",
    listed: bool = True,
    noindex: bool = False,
    nofollow: bool = False,
    canonical: str | None = None,
    scripted: tuple[str, ...] = (),
    validators: frozenset[str] = frozenset({"etag", "last-modified"}),
    **context: Any,
) -> Page:
    """Render `templates/TEMPLATE.html` inside a frame and note what it says.

    `canonical`: None names the page itself, "" names nothing, anything else is another page.
    """
    robots = ", ".join(
        word for word, said in (("noindex", noindex), ("nofollow", nofollow)) if said
    )
    rendered = render(
        f"{template}.html",
        target,
        frame=f"frame_{frame}.html",
        kind=kind,
        title=title,
        summary=summary or title,
        date=date,
        robots=robots,
        canonical=target if canonical is None else canonical,
        **context,
    )
    return Page(
        target=target,
        body=rendered.body.encode(),
        links=(*rendered.links, *(Link(href, scripted=True) for href in scripted)),
        redirect=Redirect(canonical, Hop.CANONICAL) if canonical else None,
        title=title,
        kind=kind,
        main_text=rendered.main_text,
        modified=date,
        listed=listed and not noindex,
        noindex=noindex,
        nofollow=nofollow,
        validators=validators,
    )
