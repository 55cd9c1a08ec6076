"""Pages from Jinja2 templates: everything is escaped, and links carry the server's path prefix."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from trapline import __version__
from trapline.dashboard import assets, charts, formatting
from trapline.dashboard.viewer import Viewer
from trapline.settings import Settings

_NOTICE: Final = "trapline_notice"
_LONGEST_NOTICE: Final = 500
_FILTERS: Final[tuple[Callable[..., Any], ...]] = (
    formatting.number,
    formatting.compact,
    formatting.size,
    formatting.duration,
    formatting.when,
    formatting.ago,
    formatting.plain,
    formatting.block,
    formatting.short,
    formatting.link,
    formatting.pretty,
    formatting.outcome,
    formatting.sentence,
)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update({function.__name__: function for function in _FILTERS})
    environment.globals.update(
        version=__version__, columns=charts.columns, waterfall=charts.waterfall
    )
    return environment


_ENVIRONMENT: Final = _environment()


def prefix_of(request: Request) -> str:
    settings: Settings = request.app.state.settings
    return settings.server.path_prefix


def query_with(request: Request, **changes: Any) -> str:
    """Return the query string of this view with some values changed; None removes one."""
    values = dict(request.query_params) | changes
    kept = {name: value for name, value in values.items() if value is not None}
    return "?" + urlencode(kept)


def fragment(template: str, prefix: str, /, **context: Any) -> str:
    """Render a part of a page, for whoever may see it."""
    return _ENVIRONMENT.get_template(template).render(
        url=lambda path: prefix + path, viewer=None, **context
    )


def page(request: Request, viewer: Viewer | None, template: str, /, **context: Any) -> HTMLResponse:
    """Render a view."""
    prefix = prefix_of(request)
    notice = request.cookies.get(_NOTICE)
    body = _ENVIRONMENT.get_template(template).render(
        request=request,
        viewer=viewer,
        url=lambda path: prefix + path,
        asset=lambda file: f"{prefix}/assets/{assets.load().names[file]}",
        query=lambda **changes: query_with(request, **changes),
        notice=None if notice is None else unquote(notice)[:_LONGEST_NOTICE],
        **context,
    )
    response = HTMLResponse(body, headers={"Cache-Control": "no-store"})
    if notice is not None:
        response.delete_cookie(_NOTICE, path=prefix or "/")
    return response


def redirect(request: Request, path: str, notice: str | None = None) -> RedirectResponse:
    """Go on to a view after a change, and say there what was done."""
    prefix = prefix_of(request)
    response = RedirectResponse(prefix + path, status_code=HTTPStatus.SEE_OTHER)
    if notice is not None:
        value = quote(notice[:_LONGEST_NOTICE])
        response.set_cookie(
            _NOTICE, value, max_age=60, path=prefix or "/", httponly=True, samesite="lax"
        )
    return response
