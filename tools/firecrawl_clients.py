"""Run the published end-to-end tests of Firecrawl's own clients against `trapline serve`.

The tests come with the packages: the source distribution of firecrawl-py and the npm package of
@mendable/firecrawl-js. They are downloaded to a temporary directory and nothing of them is kept. Of the npm package these
are the tests of v2, as its own script runs them. The
websites that they name are pinned to the test site, on port 443, so this needs root.

    make firecrawl-clients              both clients, newest versions
    make firecrawl-clients ONLY=python  one of them
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.site.site import running
from tests.support.llm_server import answering
from tests.support.serve_process import serving

HOSTS: Final = (
    "docs.firecrawl.dev",
    "firecrawl.dev",
    "www.firecrawl.dev",
    "example.com",
    "github.com",
)
_HIT: Final = {
    "title": "Firecrawl, and the capital of France",
    "content": "The capital of France is Paris.",
    "img_src": "https://docs.firecrawl.dev/logo.png",
    "resolution": "640x480",
    "publishedDate": "2026-11-01T00:00:00",
}
# The prompt of the clients' test of crawl options asks for blog posts and documentation.
_ANSWERS: Final = {"includePaths": ["blog/.*", "docs/.*"], "excludePaths": []}
_PYTHON: Final = ("pytest", "pytest-asyncio", "python-dotenv", "requests")
_SECONDS: Final = 1800


def main(only: str | None) -> int:
    """Run the chosen clients' tests; print one line of JSON; fail if a client could not be run."""
    results: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory(prefix="firecrawl-clients-") as directory,
        _server(Path(directory)) as url,
    ):
        clients = {"python": _python, "javascript": _javascript}
        for name, run in clients.items():
            if only in (None, "", name):
                home = Path(directory) / name
                home.mkdir()
                results[name] = run(home, _environment(url))
    sys.stdout.write(json.dumps(results) + "\n")
    return 0 if all(result["passed"] for result in results.values()) else 1


@contextmanager
def _server(directory: Path) -> Iterator[str]:
    """Serve Trapline, beside the test site under the names of the websites that the tests visit."""
    with running() as site, answering() as oracle:
        site.serve_as(443)
        oracle.say, oracle.results = _say, [_HIT | {"url": f"https://{host}/"} for host in HOSTS]
        pinned = ",".join(f"{host}:443:127.0.0.1" for host in HOSTS)
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        environment = kept | {
            "TRAPLINE_HOME": str(directory / "home"),
            "TRAPLINE_RESOLVE": pinned,
            "TRAPLINE_ALLOW_NETS": "127.0.0.0/8",
            "TRAPLINE_LLM_URL": f"{oracle.url}/v1",
            "TRAPLINE_LLM_KEY": "sk-1",
            "TRAPLINE_LLM_MODEL": "tiny",
            "TRAPLINE_SEARXNG_URL": oracle.url,
        }
        with serving(environment) as (url, _):
            yield url


def _say(request: dict[str, Any]) -> str:
    """Answer as a language model would that knows nothing but the schema."""
    text = "\n".join(message["content"] for message in request["messages"])
    start = text.find('{"')
    if start < 0:
        return "A short answer."
    try:
        schema, _ = json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError:
        return "{}"
    return json.dumps(_instance(schema))


def _instance(schema: dict[str, Any], name: str = "") -> Any:
    """Return a value that a JSON schema allows."""
    if name in _ANSWERS:
        return _ANSWERS[name]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: _instance(part, name) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_instance(schema.get("items", {"type": "string"}))]
    return {"string": "words", "boolean": True, "integer": 1, "number": 1, "null": None}.get(kind)


def _environment(url: str) -> dict[str, str]:
    names = ("API_URL", "TEST_URL", "FIRECRAWL_API_URL")
    keys = ("API_KEY", "TEST_API_KEY", "FIRECRAWL_API_KEY")
    return dict(os.environ) | dict.fromkeys(names, url) | dict.fromkeys(keys, "fc-any")


def _python(home: Path, environment: dict[str, str]) -> dict[str, Any]:
    venv.create(home / "venv", with_pip=True)
    pip = [str(home / "venv/bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    # The newest version whose requirements can be had.
    _run([*pip, "install", "firecrawl-py", *_PYTHON], home)
    look = "import importlib.metadata as m; print(m.version('firecrawl-py'))"
    version = _run([pip[0], "-c", look], home).strip()
    source_only = ["--no-deps", "--no-binary", ":all:"]
    _run([*pip, "download", *source_only, f"firecrawl-py=={version}"], home)
    _unpack(next(home.glob("firecrawl_py-*.tar.gz")), home)
    source = next(home.glob("firecrawl_py-*/"))
    # Beside the installed package, not inside its source: the tests import what users install.
    tests = home / "e2e"
    (source / "firecrawl/__tests__/e2e").rename(tests)
    command = [str(home / "venv/bin/pytest"), "-q", "-rfE", "-p", "no:cacheprovider", str(tests)]
    report = _run(command, home, environment, check=False)
    sys.stderr.write(report[-6000:])
    return {"version": version, **_pytest(report)}


def _pytest(report: str) -> dict[str, int]:
    counts = dict.fromkeys(("passed", "failed", "skipped", "error"), 0)
    for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", report[-500:]):
        counts[word] = int(number)
    return counts


def _javascript(home: Path, environment: dict[str, str]) -> dict[str, Any]:
    name = "@mendable/firecrawl-js"
    versions: list[str] = json.loads(_run(["npm", "view", name, "versions", "--json"], home))
    newest = max(
        (version for version in versions if re.fullmatch(r"[\d.]+", version)),
        key=lambda version: tuple(map(int, version.split("."))),
    )
    _run(["npm", "pack", "--silent", f"{name}@{newest}"], home)
    _unpack(next(home.glob("*.tgz")), home)
    package = home / "package"
    _run(["npm", "install", "--silent", "--no-audit", "--no-fund"], package)
    tests = sorted(str(path) for path in (package / "src/__tests__/e2e/v2").rglob("*.test.ts"))
    if not tests:
        return {"version": newest, "passed": 0, "failed": 0, "note": "The package has no tests."}
    output = home / "results.json"
    command = ["npx", "jest", "--json", f"--outputFile={output}", *tests]
    options = {"NODE_OPTIONS": "--experimental-vm-modules"}
    report = _run(command, package, environment | options, check=False)
    sys.stderr.write(report[-6000:])
    found = json.loads(output.read_text())
    counts = {word: found[f"num{word.title()}Tests"] for word in ("passed", "failed", "pending")}
    return {"version": newest, **counts}


def _unpack(archive: Path, directory: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")


def _run(
    command: list[str],
    directory: Path,
    environment: dict[str, str] | None = None,
    *,
    check: bool = True,
) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if not check else None,
        text=True,
        timeout=_SECONDS,
        check=check,
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(os.environ.get("ONLY")))
