"""`trapline browser`: the browser for pages that scripts fill."""

import os
import shlex
import subprocess
from dataclasses import asdict

import click

from trapline.cli import terminal
from trapline.errors import Unavailable
from trapline.fetch.browser.binary import find_browser, install_command
from trapline.fetch.browser.process import browser_version
from trapline.settings import Settings


@click.group()
def command() -> None:
    """The browser for pages that scripts fill, screenshots and actions.

    \b
    Example: trapline browser status
    """


@command.command("status")
@terminal.json_option
@click.pass_obj
@terminal.asynchronous
async def status(settings: Settings, as_json: bool) -> None:
    """Start the browser once, and say which it is and whether its sandbox works.

    Exits with 7 when there is none.

    \b
    Example: trapline browser status --json
    """
    version = await browser_version(settings.browser)
    binary = find_browser(settings.browser.location)
    row = {} if binary is None else asdict(binary)
    terminal.show_one({**row, "version": version}, as_json=as_json)


@command.command("install")
@click.option("--dry-run", is_flag=True, help="Only print the command.")
def install(dry_run: bool) -> None:
    """Install a browser with the package manager of this system.

    \b
    Example: trapline browser install
    """
    line = install_command()
    if line is None:
        raise Unavailable(
            "This system has no package manager that we know: install Chromium by hand, or name"
            " its path in TRAPLINE_BROWSER."
        )
    if os.geteuid() != 0 and line[0] != "brew":
        line = ["sudo", *line]
    click.echo(shlex.join(line))
    if not dry_run and subprocess.run(line, check=False).returncode != 0:
        raise Unavailable("The package manager failed; its message is above.")
