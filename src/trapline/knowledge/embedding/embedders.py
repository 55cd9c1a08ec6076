"""The embedding models of this process: the light one always, better ones by setting."""

from dataclasses import dataclass, field

from trapline.knowledge.embedding.embedder import Embedder, Model
from trapline.knowledge.embedding.static import StaticEmbedder
from trapline.settings import Settings


@dataclass(slots=True)
class Embedders:
    """Makes each embedder once."""

    settings: Settings
    _static: StaticEmbedder = field(default_factory=StaticEmbedder)

    @property
    def default(self) -> Embedder:
        """What new sources are embedded with."""
        return self._static

    def of(self, model: Model) -> Embedder | None:
        """Return who makes vectors that can be compared with a model's; None if it is not here."""
        return self._static if model == self._static.model else None
