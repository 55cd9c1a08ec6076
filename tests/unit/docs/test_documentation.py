"""What README and docs lead to exists: links and anchors, files, decisions, commands, settings, endpoints."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from tests.support.paths import DOCS, ROOT
from tools.reference_pages import api_page, commands, root_context
from trapline.api.firecrawl.requests.crawl_request import CrawlBody
from trapline.pipeline.options import CrawlOptions, MapOptions, ScrapeOptions
from trapline.pipeline.sites.site_config import SiteConfig
from trapline.settings import Settings

PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))
]  # fmt: skip
# test_coverage.py reads docs/coverage more closely.
GUIDES = [page for page in PAGES if "docs/coverage/" not in page]
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
MOST_WORDS = 510  # one printed page

_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_DECISION = re.compile(r"\bdecisions? (\d{3})\b")
_FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|sql|c|npz|md|toml))`")
_COMMAND = re.compile(r"^(?:\$ | +Example: )?((?:[A-Z_]+=\S+ )*trapline [a-z].*)$", re.MULTILINE)
_SPAN = re.compile(r"`((?:[A-Z_]+=\S+ )*trapline [a-z][^`]*)`")
_SETTING = re.compile(r"\b(TRAPLINE_[A-Z_]+)\b")
_ENDPOINT = re.compile(r"(?<![\w.])(?:127\.0\.0\.1:3002)?(/(?:api|v2|upload)/[\w/{}.-]+)")
_TARGET = re.compile(r"(?:^|`)make ([a-z-]+)(?![\w-])", re.MULTILINE)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    here = (ROOT / page).parent
    for target, anchor in _LINK.findall(text_of(page)):
        path = here / target if target else ROOT / page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_decisions_exist(page: str) -> None:
    numbers = {path.name[:3] for path in DECISIONS}
    assert set(_DECISION.findall(text_of(page))) <= numbers


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_decisions_have_one_form(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {path.name[:3]}: ")
    parts = ["Context", "Decision", "Alternatives", "Consequences"]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == parts
    assert len(text.split()) <= MOST_WORDS


def test_the_index_of_decisions_is_complete() -> None:
    titles = {path.name: path.read_text().partition("\n")[0][7:] for path in DECISIONS}
    rows = re.findall(
        r"^\| \[\d{3}\]\((.*)\) \| (.*) \|$", text_of("docs/decisions/README.md"), re.MULTILINE
    )
    assert dict(rows) == titles


@cache
def files() -> tuple[str, ...]:
    """Return every path of the repository that a page may name, from its root."""
    kept = ("src", "docs", "tests", "tools", "benchmarks")
    inside = [path for folder in kept for path in (ROOT / folder).rglob("*") if path.is_file()]
    return tuple("/" + path.relative_to(ROOT).as_posix() for path in (*inside, *ROOT.glob("*")))


@pytest.mark.parametrize("page", GUIDES)
def test_files_exist(page: str) -> None:
    """A page may leave out where a file is, as long as there is one of that name."""
    named = {name for name in _FILE.findall(text_of(page)) if not re.search("NNN|SCHEMA", name)}
    assert {name for name in named if not any(f.endswith(f"/{name}") for f in files())} == set()


def commands_of(page: str) -> Iterator[list[str]]:
    text = text_of(page)
    for line in (*_COMMAND.findall(text), *_SPAN.findall(text)):
        words = shlex.split(line.replace("…", " "), comments=True)
        yield words[words.index("trapline") + 1 :]


@cache
def known() -> dict[str, click.Command]:
    return {c.command_path: c.command for c in commands(root_context())}


@pytest.mark.parametrize("page", GUIDES)
def test_commands_and_their_options_exist(page: str) -> None:
    for words in commands_of(page):
        path = f"trapline {words[0]}"
        assert path in known(), words
        if isinstance(known()[path], click.Group) and len(words) > 1:
            path += f" {words[1]}"
            assert path in known(), words
        ours = words[: words.index("--")] if "--" in words else words
        options = {option for p in known()[path].params for option in (*p.opts, *p.secondary_opts)}
        assert {word for word in ours if word.startswith("--")} <= options, words


@pytest.mark.parametrize("page", GUIDES)
def test_targets_of_make_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets |= {f"bench-{path.stem}" for path in (ROOT / "benchmarks").glob("[a-z]*.py")}
    assert set(_TARGET.findall(text_of(page))) <= targets


@pytest.mark.parametrize("page", GUIDES)
def test_settings_exist(page: str) -> None:
    ours = {
        kind.variable(name) for kind in Settings.groups().values() for name in kind.model_fields
    }
    # A switch for tests, which the native package itself reads.
    assert set(_SETTING.findall(text_of(page))) <= ours | {"TRAPLINE_NATIVE"}


@cache
def endpoints() -> set[str]:
    return {
        re.sub(r"\{\w+\}", "{}", path) for path in re.findall(r"`(?:[A-Z]+ )?(/[^`]*)`", api_page())
    }


@pytest.mark.parametrize("page", [page for page in GUIDES if page != "docs/api.md"])
def test_endpoints_exist(page: str) -> None:
    named = {
        re.sub(r"\{\w+\}", "{}", path.rstrip("/.")) for path in _ENDPOINT.findall(text_of(page))
    }
    missing = {
        path for path in named
        if not any(there == path or there.startswith(f"{path}/") for there in endpoints())
    }  # fmt: skip
    assert missing == set()


def test_every_option_of_a_job_and_field_of_a_site_is_explained() -> None:
    page = text_of("docs/sites.md")
    named = set(re.findall(r"`(\w+)`", page))
    for options in (SiteConfig, CrawlOptions, MapOptions, ScrapeOptions):
        assert set(options.__struct_encode_fields__) <= named, options


def test_firecrawls_names_of_options_are_theirs() -> None:
    part = text_of("docs/sites.md").partition("## Options of a crawl")[2].partition("\n## ")[0]
    theirs = {
        name
        for row in re.findall(r"\| ([^|]*) \|$", part, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert theirs
    assert theirs <= set(CrawlBody.model_fields) | {
        f.alias for f in CrawlBody.model_fields.values()
    }
