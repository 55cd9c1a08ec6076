"""Write docs/settings.md and docs/cli.md from the code: `make docs`."""

from collections.abc import Iterator
from pathlib import Path

import click

from trapline.cli import cli
from trapline.settings import Settings

DOCS = Path(__file__).parent.parent / "docs"


def settings_page() -> str:
    lines = [
        "# Settings",
        "",
        "All settings are environment variables, read once at start. A wrong value stops the program",
        "with a sentence that names the variable. This page is generated from `settings.py`.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        lines.append(f"| `{Settings.variable(name)}` | {_default(name)} | {field.description} |")
    return "\n".join(lines) + "\n"


def cli_page() -> str:
    root = click.Context(cli, info_name="trapline")
    lines = [
        "# The command line",
        "",
        "Exit status: 0 done, 1 the answer is no or something failed, 2 wrong use, 3 not found,",
        "4 not allowed, 5 conflicts with the present state, 6 a limit is reached, 7 a part is missing",
        "or down, 130 interrupted. This page is generated from the commands' own help.",
    ]
    for context in commands(root):
        level = "#" * (context.command_path.count(" ") + 1)
        lines += ["", f"{level} `{context.command_path}`", "", "```", context.get_help(), "```"]
    return "\n".join(lines) + "\n"


def _default(name: str) -> str:
    field = Settings.model_fields[name]
    if field.default_factory is not None:
        return "the platform's user data directory"
    if field.default is None or field.default == ():
        return "–"  # noqa: RUF001 (a dash for people)
    return f"`{field.default}`"


def commands(context: click.Context) -> Iterator[click.Context]:
    if not isinstance(context.command, click.Group):
        return
    for name in context.command.list_commands(context):
        found = context.command.get_command(context, name)
        assert found is not None
        child = click.Context(found, parent=context, info_name=name, max_content_width=96)
        yield child
        yield from commands(child)


PAGES = {"settings.md": settings_page, "cli.md": cli_page}

if __name__ == "__main__":
    for page, render in PAGES.items():
        (DOCS / page).write_text(render())
