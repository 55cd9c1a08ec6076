"""A request as code: for curl, Python, JavaScript and our command line."""

import json
import shlex
from typing import Any


def samples(base: str, verb: str, body: str) -> dict[str, str]:
    """Return the request in each language; a body that is no JSON object gives none."""
    try:
        values = json.loads(body)
    except ValueError:
        return {}
    if not isinstance(values, dict):
        return {}
    url, compact = f"{base}/v2/{verb}", json.dumps(values, ensure_ascii=False)
    return {
        "curl": _curl(url, compact),
        "Python": _python(url, values),
        "JavaScript": _javascript(url, compact),
        "CLI": _cli(verb, values),
    }


def _curl(url: str, body: str) -> str:
    return (
        f"curl -X POST {shlex.quote(url)} \\\n"
        "  -H 'Authorization: Bearer YOUR_KEY' \\\n"
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(body)}"
    )


def _python(url: str, values: dict[str, Any]) -> str:
    return (
        "import json, urllib.request\n\n"
        f"body = {values!r}\n"
        "request = urllib.request.Request(\n"
        f"    {url!r},\n"
        "    json.dumps(body).encode(),\n"
        '    {"Authorization": "Bearer YOUR_KEY", "Content-Type": "application/json"},\n'
        ")\n"
        "print(json.load(urllib.request.urlopen(request)))"
    )


def _javascript(url: str, body: str) -> str:
    return (
        f"const response = await fetch({json.dumps(url)}, {{\n"
        '  method: "POST",\n'
        '  headers: { Authorization: "Bearer YOUR_KEY", "Content-Type": "application/json" },\n'
        f"  body: JSON.stringify({body}),\n"
        "});\n"
        "console.log(await response.json());"
    )


def _cli(verb: str, values: dict[str, Any]) -> str:
    target = values.get("url") or values.get("query")
    if verb == "extract" or not isinstance(target, str):
        return "# The command line has no such command; use the API."
    limit = values.get("limit")
    option = f" --limit {limit}" if verb == "crawl" and isinstance(limit, int) else ""
    return f"trapline {verb} {shlex.quote(target)}{option}"
