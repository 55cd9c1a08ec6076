"""`trapline serve`."""

import webbrowser
from dataclasses import replace

import click
import uvloop

from trapline.app.server import serve
from trapline.settings import Settings


@click.command()
@click.option("--host", help="Address to bind (TRAPLINE_HOST).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to bind (TRAPLINE_PORT).")
@click.option("--open", "open_browser", is_flag=True, help="Open the dashboard in a browser.")
@click.pass_obj
def command(settings: Settings, host: str | None, port: int | None, open_browser: bool) -> None:
    """Start the dashboard, the API, the workers and, without DATABASE_URL, the embedded PostgreSQL.

    Stops gracefully on Ctrl-C or SIGTERM.

    \b
    Example: trapline serve --port 3002 --open
    """
    changes = {"host": host, "port": port}
    overrides = {name: value for name, value in changes.items() if value is not None}
    chosen = replace(settings, server=settings.server.model_copy(update=overrides))
    uvloop.run(serve(chosen, on_ready=webbrowser.open if open_browser else None))
