"""What the HTTP edge calls: the parts of a process that works, beside its database."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from trapline.deliver.feeds import Feeds
from trapline.errors import Unavailable
from trapline.pipeline.language import LanguageModel
from trapline.pipeline.mapping import Mapper
from trapline.pipeline.results import Results
from trapline.pipeline.scraping import Scraper
from trapline.pipeline.searching import Searching
from trapline.queue.notices import Bell


@dataclass(frozen=True, slots=True)
class Engine:
    """Made by `app`, where there is a worker; without one, only what needs no work is answered."""

    scraper: Scraper
    mapper: Mapper
    results: Results
    feeds: Feeds
    bell: Bell
    model: LanguageModel
    searching: Searching


def engine(connection: HTTPConnection) -> Engine:
    found: Engine | None = connection.app.state.engine
    if found is None:
        raise Unavailable("This process answers, but it does not work.")
    return found


def ring(connection: HTTPConnection) -> None:
    """Say that there is work, if there is a worker here; others look for themselves."""
    found: Engine | None = connection.app.state.engine
    if found is not None:
        found.bell.ring(ready=True)


async def _engine(connection: HTTPConnection) -> Engine:
    # Dependencies are coroutines: a plain function would be sent to a thread.
    return engine(connection)


CurrentEngine = Annotated[Engine, Depends(_engine)]
