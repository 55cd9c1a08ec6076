"""The embedding models of this process, by name: the light one always, better ones by setting."""

from dataclasses import dataclass, field
from typing import Final

from trapline.errors import Unavailable
from trapline.knowledge.config import IngestConfig
from trapline.knowledge.embedding.embedder import Embedder, Model
from trapline.knowledge.embedding.static import StaticEmbedder
from trapline.settings import Settings

STATIC: Final = StaticEmbedder.model.name


def default_model(settings: Settings) -> str:
    """Return the name of the model that new sources are embedded with."""
    del settings
    return STATIC


def default_config(settings: Settings) -> IngestConfig:
    """Return how new sources are cut and embedded, unless they say otherwise."""
    return IngestConfig(default_model(settings), settings.chunk_tokens, settings.chunk_overlap)


@dataclass(slots=True)
class Embedders:
    """Makes each embedder when it is first asked for."""

    settings: Settings
    _made: dict[str, Embedder] = field(default_factory=dict)

    @property
    def default(self) -> Embedder:
        """What new sources are embedded with."""
        return self.named(default_model(self.settings))

    def of(self, model: Model) -> Embedder | None:
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
        raise Unavailable(f"There is no embedding model named {name!r} here.")
