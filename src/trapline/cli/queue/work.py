"""`trapline work`."""

import socket

import click
import uvloop

from trapline import app
from trapline.settings import Settings


@click.command()
@click.option(
    "--worker-name",
    default=socket.gethostname,
    show_default="host name",
    help="Name of this agent.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Most tasks at once.",
)
@click.pass_obj
def command(settings: Settings, worker_name: str, concurrency: int) -> None:
    """Run tasks, without an API. Start as many as you like, on any machine, on one database.

    Stops gracefully on Ctrl-C or SIGTERM: what runs is finished or handed back.

    \b
    Example: DATABASE_URL=postgresql://db.example/trapline trapline work --concurrency 200
    """
    uvloop.run(app.work(settings, name=worker_name, concurrency=concurrency))
