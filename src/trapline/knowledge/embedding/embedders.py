"""The embedding models of this process, by name: the light one always, better ones by setting."""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from trapline.errors import Unavailable
from trapline.knowledge.embedding import model_install
from trapline.knowledge.embedding.embedder import Embedder, EmbeddingModel
from trapline.knowledge.embedding.openai_endpoint import EndpointEmbedder
from trapline.knowledge.embedding.sentence_model import SentenceEmbedder
from trapline.knowledge.embedding.static_model import StaticEmbedder
from trapline.knowledge.source_config import IngestConfig
from trapline.settings import EmbeddingSettings

STATIC: Final = StaticEmbedder.model.name


def default_model(settings: EmbeddingSettings) -> str:
    """Return the name of the model that new sources are embedded with."""
    if settings.url is not None:
        return settings.model
    directory = sentence_directory(settings)
    return STATIC if directory is None else directory.name


def sentence_directory(settings: EmbeddingSettings) -> Path | None:
    """Where the sentence model is that runs on this machine, if one is set."""
    if settings.onnx is None:
        return None
    if settings.onnx == model_install.MINILM:
        return model_install.directory_of(settings)
    return Path(settings.onnx).expanduser().resolve()


def configured_models(settings: EmbeddingSettings) -> list[str]:
    """Return the names of the models that the settings speak of, the lightest first."""
    directory = sentence_directory(settings)
    names = [STATIC, None if directory is None else directory.name]
    if settings.url is not None:
        names.append(settings.model)
    return [name for name in names if name is not None]


def default_config(settings: EmbeddingSettings) -> IngestConfig:
    """Return how new sources are cut and embedded, unless they say otherwise."""
    return IngestConfig(default_model(settings), settings.chunk_tokens, settings.chunk_overlap)


def usable_models(settings: EmbeddingSettings) -> list[str]:
    """Return those of them that this process can load. An endpoint is taken at its word."""
    found, embedders = [], Embedders(settings)
    for name in configured_models(settings):
        with suppress(Unavailable):
            embedders.named(name)
            found.append(name)
    return found


@dataclass(slots=True)
class Embedders:
    """Makes each embedder when it is first asked for."""

    settings: EmbeddingSettings
    _made: dict[str, Embedder] = field(default_factory=dict)

    @property
    def default(self) -> Embedder:
        """What new sources are embedded with."""
        return self.named(default_model(self.settings))

    def of(self, model: EmbeddingModel) -> Embedder | None:
        """Return who makes vectors that can be compared with a model's; None if it is not here."""
        try:
            found = self.named(model.name)
        except Unavailable:
            return None
        return found if found.model == model else None

    def named(self, name: str) -> Embedder:
        """Return an embedder; Unavailable says how to have it."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Embedder:
        if name == STATIC:
            return StaticEmbedder()
        if self.settings.url is not None and name == self.settings.model:
            return EndpointEmbedder(self.settings)
        directory = sentence_directory(self.settings)
        if directory is not None and name == directory.name:
            if self.settings.onnx == model_install.MINILM and not directory.is_dir():
                raise Unavailable("MiniLM is not installed: run `trapline models install minilm`.")
            return SentenceEmbedder(directory, threads=self.settings.threads)
        raise Unavailable(f"There is no embedding model named {name!r} here.")
