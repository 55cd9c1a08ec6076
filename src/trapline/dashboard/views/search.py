"""`/search`: hybrid search with filters, highlighted passages and the explanation of each leg."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from markupsafe import Markup, escape
from starlette.responses import Response

from trapline.api.native.knowledge import search as api
from trapline.api.pagination import Cursor
from trapline.dashboard import rendering
from trapline.dashboard.viewer import CurrentViewer, Reading
from trapline.knowledge.search import MOST_CHARACTERS, Mode, Searcher

router = APIRouter(prefix="/search")

_Word = Annotated[str | None, Query(max_length=300)]


@router.get("")
async def search(
    request: Request,
    conn: Reading,
    viewer: CurrentViewer,
    q: Annotated[str | None, Query(max_length=MOST_CHARACTERS)] = None,
    mode: Mode = "hybrid",
    language: _Word = None,
    host: _Word = None,
    kind: Annotated[str | None, Query(pattern="^(file|url|site)$")] = None,
    cursor: Cursor = None,
) -> Response:
    """Search what was indexed."""
    found = None
    if q is not None:
        asked = api.InUrl.model_validate(
            {"q": q, "mode": mode, "explain": True, "limit": 20, "cursor": cursor}
            | {"language": [language] if language else [], "host": [host] if host else []}
            | {"kind": [kind] if kind else []}
        )
        searcher: Searcher = request.app.state.searcher
        found = await api.search_by_url(conn, viewer.principal, searcher, asked)
    shown = {"q": q, "mode": mode, "language": language, "host": host, "kind": kind}
    return rendering.page(
        request, viewer, "search.html", found=found, highlighted=highlighted, **shown
    )


def highlighted(text: str, marks: Sequence[tuple[int, int]]) -> Markup:
    """Return a passage, escaped, with the places of the words that were looked for marked."""
    return Markup("").join(_pieces(text, marks))


def _pieces(text: str, marks: Sequence[tuple[int, int]]) -> Iterator[Markup]:
    end = 0
    for start, stop in marks:
        yield escape(text[end:start])
        yield Markup("<mark>{}</mark>").format(text[start:stop])
        end = stop
    yield escape(text[end:])
