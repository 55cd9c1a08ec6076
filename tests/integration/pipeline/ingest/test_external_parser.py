"""An external parser of files: asked about its kinds alone, bounded, and never the only way."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr

from tests.site import office
from tests.site.pdf import pdf
from tests.site.site import Site
from tests.support.ingest_api import answering, asked, ended, upload
from tests.support.scraper import site_settings
from tests.support.settings import change_settings
from trapline.db.pool import Database
from trapline.errors import SettingsError
from trapline.pipeline.ingest.external_parser import ExternalParser, ParserFailed
from trapline.settings import Settings

LIST = pdf([("Price list", "Glass costs thirty")], "List")
Answer = Callable[[], Awaitable[web.StreamResponse]]


@dataclass
class Parser:
    """A parser on loopback that answers as a test says."""

    url: str = ""
    answers: list[web.Response | Answer] = field(default_factory=list)
    got: list[tuple[str, str, bytes]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.keys.append(request.headers.get("Authorization"))
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        with file.file as body:
            self.got.append((file.filename, file.content_type, body.read()))
        answer = self.answers.pop(0) if self.answers else web.Response(text="# Read by another")
        return answer if isinstance(answer, web.Response) else await answer()


@pytest.fixture
async def parser() -> AsyncIterator[Parser]:
    found = Parser()
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/parse", found.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}/parse"
    yield found
    await runner.cleanup()


@pytest.fixture
def settings(server_settings: Settings, parser: Parser) -> Settings:
    return change_settings(
        server_settings,
        {
            "parser_url": parser.url,
            "parser_key": SecretStr("sk-7"),
            "parser_timeout": 2.0,
            "parser_answer_bytes": 100_000,
        },
    )


async def said(database: Database) -> dict[str, Any]:
    """Each file's text and what was told of it."""
    async with database.system_tx() as conn:
        texts = await conn.fetch("SELECT path, title, markdown FROM knowledge.entry")
        told = await conn.fetch("SELECT data FROM queue.event WHERE type = 'item'")
    warnings = {one["data"]["name"]: one["data"]["warning"] for one in told}
    return {
        row["path"].lstrip("/"): (row["title"], row["markdown"], warnings[row["path"].lstrip("/")])
        for row in texts
    }


async def test_its_kinds_are_read_by_it_and_others_are_not(
    database: Database, settings: Settings, parser: Parser
) -> None:
    body = {"data": {"markdown": "# Prices\n\nGlass: 30", "metadata": {"title": "Price list"}}}
    parser.answers = [web.json_response(body)]
    files = {
        "list.pdf": LIST,
        "note.md": "# A note\n\nNot for others.",
        "form.docx": office.docx("Form", ("Name it.",)),
    }
    async with answering(database, settings) as ingest_client:
        _, answer = await upload(ingest_client, files)
        assert (await ended(ingest_client, answer["jobId"]))["completed"] == 3
        found = await said(database)
        assert found["list.pdf"] == ("Price list", "# Prices\n\nGlass: 30", None)
        assert "Not for others" in found["note.md"][1]
        assert [(name, kind) for name, kind, _ in parser.got] == [("list.pdf", "application/pdf")]
        assert parser.got[0][2] == LIST
        assert parser.keys == ["Bearer sk-7"]
        # What it read is searched.
        searched = await asked(ingest_client, "/api/search?q=glass")
        assert searched["items"][0]["title"] == "Price list"


async def test_whatever_goes_wrong_the_file_is_read_with_a_warning(
    database: Database, settings: Settings, parser: Parser
) -> None:
    async def hang() -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    wrong: dict[str, tuple[list[web.Response | Answer], str]] = {
        "refused": ([web.Response(status=401, text="who are you?")], "401: who are you?"),
        "broken-twice": ([web.Response(status=500), web.Response(status=503)], "503"),
        "slow": ([hang], "within 2 seconds"),
        "elsewhere": (
            [web.Response(status=302, headers={"Location": "http://169.254.169.254/"})],
            "302",
        ),
        "a-picture": ([web.Response(body=b"\x89PNG", content_type="image/png")], "image/png"),
        "no-JSON": ([web.Response(text="{", content_type="application/json")], "not JSON"),
        "other-JSON": ([web.json_response({"pages": 3})], "no text under a known key"),
        "nothing": ([web.Response(text=" \n", content_type="text/markdown")], "no text in"),
        "not-UTF-8": ([web.Response(body=b"\xff\xfe\xfa", content_type="text/plain")], "UTF-8"),
        "huge": ([web.Response(body=b"a" * 200_000, content_type="text/plain")], "100,000 bytes"),
    }
    async with answering(database, settings) as ingest_client:
        for number, (name, (answers, why)) in enumerate(wrong.items()):
            parser.answers = list(answers)
            lines = ("Price list", f"Glass number {number}")
            _, answer = await upload(ingest_client, {f"{name}.pdf": pdf([lines], name)})
            assert (await ended(ingest_client, answer["jobId"]))["completed"] == 1, name
            _, markdown, warning = (await said(database))[f"{name}.pdf"]
            assert f"Glass number {number}" in markdown
            assert why in warning, (name, warning)
            assert parser.answers == []


async def test_a_trapline_elsewhere_is_such_a_parser(
    database: Database, server_settings: Settings
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v2/parse"
    settings = change_settings(server_settings, {"parser_url": url})
    async with answering(database, settings, listener) as ingest_client:
        _, answer = await upload(ingest_client, {"list.pdf": LIST})
        assert (await ended(ingest_client, answer["jobId"]))["completed"] == 1
    _, markdown, warning = (await said(database))["list.pdf"]
    assert ("Glass costs thirty" in markdown, warning) == (True, None)


async def test_one_that_was_busy_is_asked_once_more(settings: Settings, parser: Parser) -> None:
    parser.answers = [
        web.Response(status=429, headers={"Retry-After": "1"}),
        web.Response(text="<h1>Prices</h1><p>Glass costs thirty.</p>", content_type="text/html"),
    ]
    async with ExternalParser(settings.parser) as external:
        document = await external.parse(LIST, "application/pdf", "file:///list.pdf")
    assert "# Prices" in document.markdown
    assert len(parser.got) == 2


async def test_answers_in_the_words_of_several_services(settings: Settings, parser: Parser) -> None:
    answers: list[Any] = [
        {"markdown": "# A"},
        {"document": {"md_content": "# A"}},
        {"page_content": "# A", "metadata": {"title": "T"}},
        [{"text": "# A"}, {"text": "more"}],
    ]
    async with ExternalParser(settings.parser) as external:
        for body in answers:
            parser.answers = [web.json_response(body)]
            document = await external.parse(LIST, "application/pdf", "file:///list.pdf")
            assert document.markdown.startswith("# A"), body
        parser.answers = [web.Response(text=json.dumps("# A"), content_type="application/json")]
        with pytest.raises(ParserFailed):
            await external.parse(LIST, None, "file:///list.pdf")


async def test_a_file_that_was_fetched_is_read_by_it_for_search_alone(
    database: Database, settings: Settings, parser: Parser, site: Site
) -> None:
    parser.answers = [web.Response(text="# By another: zirconium"), web.Response(status=401)]
    url = f"{site.url}downloads/price-list.pdf"
    async with answering(database, site_settings(settings, site)) as ingest_client:
        for warned in (False, True):
            async with ingest_client.post("/upload/url", json={"url": url}) as answer:
                told = await answer.text()
            assert "event: completed" in told
            assert ("The external parser was of no use" in told) is warned
            found = await asked(ingest_client, "/api/search?q=zirconium&mode=keyword")
            assert [one["url"] for one in found["items"]] == ([] if warned else [url])
            # What the page says does not depend on who was there to read it.
            async with database.system_tx() as conn:
                versions = await conn.fetch("SELECT id, markdown FROM store.version")
                await conn.execute("UPDATE knowledge.entry SET version_id = NULL")
            assert len(versions) == 1
            assert "zirconium" not in versions[0]["markdown"]


async def test_broken_for_both_says_both(
    database: Database, settings: Settings, parser: Parser
) -> None:
    parser.answers = [web.Response(status=422, text="damaged")]
    async with answering(database, settings) as ingest_client:
        _, answer = await upload(ingest_client, {"broken.pdf": b"%PDF-1.7 nothing"})
        job = await ended(ingest_client, answer["jobId"])
        assert job["failed"] == 1
        (source,) = (await asked(ingest_client, "/api/knowledge-source"))["items"]
        assert "damaged" in source["error"]


async def test_what_is_too_large_for_it_is_not_sent(settings: Settings, parser: Parser) -> None:
    small = change_settings(settings, {"parser_bytes": len(LIST)})
    async with ExternalParser(small.parser) as external:
        assert external.accepts(LIST, None, "list.pdf")
        assert not external.accepts(LIST + b" ", None, "list.pdf")
        # Its bytes count, not what it is called.
        assert not external.accepts(b"# A note", "application/pdf", "note.md")
    async with ExternalParser(change_settings(small, {"parser_url": None}).parser) as nobody:
        assert not nobody.accepts(LIST, None, "list.pdf")


async def test_a_kind_that_nobody_knows_is_refused_at_the_start(settings: Settings) -> None:
    with pytest.raises(SettingsError, match=r"TRAPLINE_PARSER_TYPES.*docx"):
        ExternalParser(change_settings(settings, {"parser_types": ("scroll",)}).parser)
