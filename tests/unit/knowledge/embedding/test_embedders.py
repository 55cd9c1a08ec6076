"""A model is said to be there when it can be loaded, not when a setting names it."""

from pathlib import Path

from tests.support.settings import make_settings
from trapline.knowledge.embedding.embedders import STATIC, configured_models, usable_models


def test_a_model_that_is_not_installed_is_not_there(tmp_path: Path) -> None:
    settings = make_settings(home=tmp_path, embed_onnx="minilm")
    assert len(configured_models(settings.embedding)) == 2
    assert usable_models(settings.embedding) == [STATIC]


def test_a_directory_that_holds_no_model_is_not_one(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model.onnx").write_bytes(b"nothing")
    (broken / "tokenizer.json").write_text("{}")
    settings = make_settings(home=tmp_path, embed_onnx=str(broken))
    assert configured_models(settings.embedding) == [STATIC, "broken"]
    assert usable_models(settings.embedding) == [STATIC]


def test_an_endpoint_is_taken_at_its_word(tmp_path: Path) -> None:
    settings = make_settings(home=tmp_path, embed_url="http://127.0.0.1:1/v1")
    assert usable_models(settings.embedding) == [STATIC, settings.embedding.model]
