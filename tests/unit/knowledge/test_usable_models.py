"""A model is said to be there when it can be loaded, not when a setting names it."""

from pathlib import Path

from trapline.knowledge.embedding.embedders import STATIC, named_here, usable
from trapline.settings import Settings


def test_a_model_that_is_not_installed_is_not_there(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embed_onnx="minilm", database_url=None)
    assert len(named_here(settings)) == 2
    assert usable(settings) == [STATIC]


def test_a_directory_that_holds_no_model_is_not_one(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model.onnx").write_bytes(b"nothing")
    (broken / "tokenizer.json").write_text("{}")
    settings = Settings(home=tmp_path, embed_onnx=str(broken), database_url=None)
    assert named_here(settings) == [STATIC, "broken"]
    assert usable(settings) == [STATIC]


def test_an_endpoint_is_taken_at_its_word(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embed_url="http://127.0.0.1:1/v1", database_url=None)
    assert usable(settings) == [STATIC, settings.embed_model]
