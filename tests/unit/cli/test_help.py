"""Every command explains itself with an example, and prints JSON where it prints data."""

import click
import pytest

from tools.reference_pages import commands, root_context
from trapline.cli import COMMANDS

CONTEXTS = {c.command_path: c for c in commands(root_context())}


@pytest.mark.parametrize("path", CONTEXTS)
def test_help_has_an_example(path: str) -> None:
    command = CONTEXTS[path].command
    assert "Example: " in (command.help or ""), f"{path} --help has no example"
    assert all(o.help for o in command.params if isinstance(o, click.Option)), path


@pytest.mark.parametrize(
    "path", [path for path in CONTEXTS if path.endswith((" list", " show", " status"))]
)
def test_what_prints_data_prints_json(path: str) -> None:
    options = {option for parameter in CONTEXTS[path].command.params for option in parameter.opts}
    assert "--json" in options


def test_the_short_help_of_every_command_is_known() -> None:
    assert {path.split()[1] for path in CONTEXTS} == set(COMMANDS)
