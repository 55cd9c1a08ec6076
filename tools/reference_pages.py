"""Write the generated pages of docs/ (settings, cli, api, modules) from the code: `make docs`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import click
from fastapi.routing import APIRoute, APIWebSocketRoute
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from tools.module_map import modules_page
from trapline.api import application
from trapline.cli import cli
from trapline.db.pool import Database
from trapline.settings import ServerSettings, Settings

# Routes are described without one being asked.
_NO_DATABASE = cast("Database", None)
DOCS = Path(__file__).parent.parent / "docs"


def settings_page() -> str:
    lines = [
        "# Settings",
        "",
        "All settings are environment variables, read once at start; none must be set. A wrong value",
        "stops the program with a sentence that names the variable. This page is generated from",
        "`settings.py`; the words are explained in [architecture](architecture.md#vocabulary).",
    ]
    for group in Settings.groups().values():
        title = (group.__doc__ or "").rstrip(".")
        lines += ["", f"## {title}", "", "| variable | default | meaning |", "|---|---|---|"]
        for name, field in group.model_fields.items():
            row = f"| `{group.variable(name)}` | {_default(field)} | {field.description} |"
            # Two groups read the same home.
            lines += [] if row in lines else [row]
    return "\n".join(lines) + "\n"


def cli_page() -> str:
    lines = [
        "# The command line",
        "",
        "`trapline` is `.venv/bin/trapline` in a checkout. Each command is in `cli/` under its name. IDs in",
        "the examples stand for yours, as `jobs list` and the like print them; a command that only queues",
        "work says so: `trapline serve` or `trapline work` does it.",
        "",
        "Exit status: 0 done, 1 the answer is no or something failed, 2 wrong use, 3 not found,",
        "4 not allowed, 5 conflicts with the present state, 6 a limit is reached, 7 a part is missing",
        "or down, 8 its time was up, 130 interrupted. This page is generated from the commands' own help.",
    ]
    for context in commands(root_context()):
        level = "#" * (context.command_path.count(" ") + 1)
        lines += ["", f"{level} `{context.command_path}`", "", "```", context.get_help(), "```"]
    return "\n".join(lines) + "\n"


def root_context() -> click.Context:
    """Return the context of `trapline` itself. Click caches the help option of the first context."""
    return click.Context(cli, info_name="trapline", **cli.context_settings)


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "the platform's user data directory"
    if field.default is None or field.default == ():
        return "–"  # noqa: RUF001 (a dash for people)
    return f"`{_written(field.default)}`"


def _written(value: object) -> str:
    """Write a value as it stands in an environment variable."""
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(str, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def commands(context: click.Context) -> Iterator[click.Context]:
    if not isinstance(context.command, click.Group):
        return
    for name in context.command.list_commands(context):
        found = context.command.get_command(context, name)
        assert found is not None
        settings = {"max_content_width": 96, **found.context_settings}
        child = click.Context(found, parent=context, info_name=name, **settings)
        yield child
        yield from commands(child)


def api_page() -> str:
    app = application.build(_NO_DATABASE, Settings(server=ServerSettings(admin_key=SecretStr("-"))))
    schema, routes = app.openapi(), list(_routes(app.routes))
    lines = [
        "# The HTTP interface",
        "",
        "`trapline serve` answers at `http://127.0.0.1:3002`, and shows this page with every field, to be",
        "tried out, under `/docs`. Every answer has the header `X-Request-Id`. Where there are API keys",
        "(`trapline keys create`), send one as `Authorization: Bearer KEY`. What is wrong with a request is",
        "said as `application/problem+json`, under `/v1` and `/v2` in [Firecrawl's own form](firecrawl.md#errors).",
        "Lists come in pages: `next` of one is the `cursor` of the next. A `*` marks what a body must have.",
        "",
        "This page is generated from the routes; the file that answers, below `src/trapline/`, is named with",
        "each. Words such as job, source and gate are explained in [architecture](architecture.md#vocabulary).",
    ]
    files = {(route.path, method.lower()): _file(route) for route in routes
             if isinstance(route, APIRoute) for method in route.methods or ()}  # fmt: skip
    by_tag: dict[str, list[str]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            tag = (operation.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).extend(
                _endpoint(method, path, operation, schema, files[path, method])
            )
    for tag, parts in sorted(by_tag.items()):
        lines += ["", f"## {tag.capitalize()}", *parts]
    lines += ["", "## WebSockets", ""]
    lines += [f"- `{route.path}`: {(route.endpoint.__doc__ or '').splitlines()[0]} `{_file(route)}`"
              for route in routes if isinstance(route, APIWebSocketRoute)]  # fmt: skip
    return "\n".join(lines) + "\n"


def _routes(found: Iterable[object]) -> Iterator[APIRoute | APIWebSocketRoute]:
    """Walk the routes of an application and of the routers that it includes."""
    for route in found:
        if isinstance(route, APIRoute | APIWebSocketRoute):
            yield route
        elif (router := getattr(route, "original_router", None)) is not None:
            yield from _routes(router.routes)


def _file(route: APIRoute | APIWebSocketRoute) -> str:
    return route.endpoint.__module__.removeprefix("trapline.").replace(".", "/") + ".py"


def _endpoint(
    method: str, path: str, operation: dict[str, Any], schema: dict[str, Any], file: str
) -> list[str]:
    said = operation.get("description") or operation.get("summary") or ""
    lines = ["", f"### `{method.upper()} {path}`", "", f"{said} `{file}`"]
    asked = [_parameter(parameter) for parameter in operation.get("parameters", [])]
    body = operation.get("requestBody", {}).get("content", {})
    for content_type, media in body.items():
        asked.append(f"- body, `{content_type}`: {_shape(media.get('schema', {}), schema)}")
    if asked:
        lines += ["", *asked]
    return lines


def _parameter(parameter: dict[str, Any]) -> str:
    must = ", required" if parameter.get("required") else ""
    said = parameter.get("description") or parameter["schema"].get("description", "")
    text = f"- `{parameter['name']}` ({parameter['in']}, {_type(parameter['schema'])}{must})"
    return f"{text}: {said}" if said else text


def _type(schema: dict[str, Any]) -> str:
    kinds = [part for part in schema.get("anyOf", [schema]) if part.get("type") != "null"]
    return " or ".join(dict.fromkeys(_one_type(part) for part in kinds))


def _one_type(part: dict[str, Any]) -> str:
    if "enum" in part:
        return " or ".join(str(value) for value in part["enum"])
    if "$ref" in part:
        return str(part["$ref"]).rpartition("/")[2]
    if part.get("type") == "array":
        return f"list of {_type(part.get('items', {}))}"
    return str(part.get("format") or part.get("type") or "any")


def _shape(body: dict[str, Any], schema: dict[str, Any]) -> str:
    """Name the fields of a body; those that must be there are marked."""
    # A body that may be left out is a choice between its fields and nothing.
    known = next((part for part in body.get("anyOf", []) if "$ref" in part), body)
    name = str(known.get("$ref", "")).rpartition("/")[2]
    found = schema.get("components", {}).get("schemas", {}).get(name, body)
    required = set(found.get("required", ()))
    fields = [
        f"`{field}`{'*' if field in required else ''} ({_type(kind)})"
        for field, kind in found.get("properties", {}).items()
    ]
    return ", ".join(fields) or _type(body)


PAGES = {
    "settings.md": settings_page,
    "cli.md": cli_page,
    "api.md": api_page,
    "modules.md": modules_page,
}

if __name__ == "__main__":
    for page, render in PAGES.items():
        (DOCS / page).write_text(render())
