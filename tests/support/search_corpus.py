"""Texts in the index, for tests of search."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

import numpy as np

from trapline.db.connection import Connection
from trapline.knowledge import passage_index
from trapline.knowledge.chunking import passages
from trapline.knowledge.embedding.embedder import Embedder, EmbeddingModel, Vectors
from trapline.knowledge.embedding.static_model import StaticEmbedder
from trapline.knowledge.passage_index import IndexableText, IndexEntry, SourceGeneration
from trapline.model import ApplicationId, OrganisationId, PageId, SiteId, SourceId

STATIC = StaticEmbedder()


@dataclass(frozen=True, slots=True)
class Text:
    """One text of a source."""

    uri: str
    markdown: str
    title: str | None = None
    language: str = "en"
    content_type: str | None = "text/html"
    dated_at: datetime | None = None
    page_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Letters:
    """A model of one's own: a text's vector says how often it has each of some letters."""

    letters: str

    @property
    def model(self) -> EmbeddingModel:
        return EmbeddingModel(f"letters-{self.letters}", len(self.letters))

    async def embed(self, texts: Sequence[str]) -> Vectors:
        counts = [[text.lower().count(letter) for letter in self.letters] for text in texts]
        vectors = np.array(counts, np.float32).reshape(len(texts), len(self.letters))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Vectors = vectors / np.where(lengths > 0, lengths, 1)
        return unit


@dataclass(frozen=True, slots=True)
class Known:
    """The embedders that a search has."""

    embedders: tuple[Embedder, ...] = (STATIC,)

    def of(self, model: EmbeddingModel) -> Embedder | None:
        return next((one for one in self.embedders if one.model == model), None)


async def source(
    conn: Connection,
    organisation_id: OrganisationId,
    *,
    kind: str = "url",
    site_id: SiteId | None = None,
    application_id: ApplicationId | None = None,
) -> SourceId:
    source_id = SourceId(uuid4())
    await conn.execute(
        "INSERT INTO knowledge.source (id, organisation_id, kind, name, uri, site_id, application_id)"
        " VALUES ($1, $2, $3, 'a source', 'https://example.com/', $4, $5)",
        source_id,
        organisation_id,
        kind,
        site_id,
        application_id,
    )
    return source_id


async def index(
    conn: Connection,
    organisation_id: OrganisationId,
    texts: Sequence[Text],
    *,
    source_id: SourceId | None = None,
    generation: int = 0,
    embedder: Embedder = STATIC,
) -> SourceId:
    """Index texts as a worker does; return their source."""
    source_id = source_id or await source(conn, organisation_id)
    place = SourceGeneration(organisation_id, source_id, generation)
    ready = [await _indexable(text, embedder) for text in texts]
    await passage_index.store_entries(conn, place, ready, embedder.model)
    return source_id


async def _indexable(text: Text, embedder: Embedder) -> IndexableText:
    cut = list(passages(text.markdown))
    vectors = await embedder.embed([passage_index.indexed_text(text.title, one) for one in cut])
    entry = IndexEntry(
        uri=text.uri,
        path="/" + text.uri.split("/", 3)[-1] if "://" in text.uri else text.uri,
        content_hash=hashlib.sha256(text.markdown.encode()).digest(),
        title=text.title,
        language=text.language,
        content_type=text.content_type,
        dated_at=text.dated_at,
        page_id=None if text.page_id is None else PageId(text.page_id),
        markdown=text.markdown,
    )
    return IndexableText(entry, cut, vectors)
