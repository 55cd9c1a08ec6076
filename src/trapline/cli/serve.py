"""`trapline serve`."""

import click
import uvloop

from trapline import app
from trapline.settings import Settings


@click.command()
@click.option("--host", help="Address to bind (TRAPLINE_HOST).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to bind (TRAPLINE_PORT).")
@click.pass_obj
def command(settings: Settings, host: str | None, port: int | None) -> None:
    """Start the API, the workers and, without DATABASE_URL, the embedded PostgreSQL.

    Stops gracefully on Ctrl-C or SIGTERM.

    \b
    Example: trapline serve --port 3002
    """
    changes = {"host": host, "port": port}
    given = {name: value for name, value in changes.items() if value is not None}
    uvloop.run(app.serve(settings.model_copy(update=given)))
