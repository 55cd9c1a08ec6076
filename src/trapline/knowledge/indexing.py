"""Makes texts searchable: an entry, its passages, their postings and vectors, in one transaction.

Texts of a source belong to a generation. The source's own `generation` is the one that is searched;
a later one is written beside it, unseen, until `swap` puts it in its place.
"""

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import InvalidInput, ModelMismatch
from trapline.knowledge.chunking import Passage
from trapline.knowledge.embedding.embedder import Model, Vectors
from trapline.knowledge.keyword import writing
from trapline.knowledge.keyword.analysis import language_of
from trapline.knowledge.keyword.writing import Words
from trapline.knowledge.sql import indexing as queries
from trapline.model import OrganisationId, PageId, SourceId

# What a swap deletes by itself, and what maintenance deletes at a time: a second's work.
_AT_ONCE: Final = 2_000
_HEADINGS_APART: Final = "\x1f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One text of a source: a file, or a page as it was.

    `markdown` is what passages are slices of; None where the page's version holds it.
    """

    uri: str
    content_hash: bytes
    path: str = ""
    title: str | None = None
    language: str | None = None
    content_type: str | None = None
    page_id: PageId | None = None
    version_id: int | None = None
    markdown: str | None = None
    dated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Indexable:
    """A text with its passages, and one row of `vectors` for each of them."""

    entry: Entry
    passages: Sequence[Passage]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Place:
    """Where texts go."""

    organisation_id: OrganisationId
    source_id: SourceId
    generation: int


@dataclass(slots=True)
class Took:
    """Seconds that a batch took to be written: passages with their vectors, then keywords."""

    vector: float = 0.0
    bm25: float = 0.0


def indexed_words(title: str | None, passage: Passage) -> str:
    """What is embedded and indexed of a passage: its title, the headings it stands under, its words."""
    above = [one for one in passage.headings if one != title]
    lead = " / ".join([*([title] if title else []), *above])
    return f"{lead}\n{passage.words}" if lead else passage.words


def fingerprint(title: str | None, passage: Passage) -> bytes:
    """Passages with the same fingerprint have the same vector."""
    return hashlib.sha256(indexed_words(title, passage).encode("utf-8", "surrogatepass")).digest()


def _primary(tag: str | None) -> str:
    """`de` of `de-AT`; `xx` where the language is not known."""
    return (tag or "xx").lower().replace("_", "-").partition("-")[0]


async def store_entry(conn: Connection, place: Place, text: Indexable, model: Model) -> int:
    """Write one text; return its entry's id."""
    return (await store_entries(conn, place, [text], model))[0]


async def store_entries(
    conn: Connection, place: Place, texts: Sequence[Indexable], model: Model
) -> list[int]:
    """Write texts in the caller's transaction; return their entries' ids, in order.

    A text whose URI the generation has already replaces it. ModelMismatch when the generation was
    begun with another model.
    """
    return await store_all(conn, [(place, model, texts)])


async def store_all(
    conn: Connection,
    shelves: Iterable[tuple[Place, Model, Sequence[Indexable]]],
    took: Took | None = None,
) -> list[int]:
    """Write texts of several places; each organisation gets one segment for each language of all."""
    began = time.perf_counter()
    entry_ids: list[int] = []
    words: dict[tuple[OrganisationId, str], dict[int, Words]] = {}
    for place, model, texts in shelves:
        written, chunk_ids = await _write(conn, place, model, texts)
        entry_ids += written
        for text, entry_id, ids in zip(texts, written, chunk_ids, strict=True):
            key = place.organisation_id, language_of(text.entry.language)
            words.setdefault(key, {}).update(
                (chunk_id, Words(entry_id, indexed_words(text.entry.title, passage)))
                for chunk_id, passage in zip(ids, text.passages, strict=True)
            )
    between = time.perf_counter()
    for (organisation_id, language), found in sorted(words.items(), key=lambda item: item[0]):
        await writing.add(conn, organisation_id, language, found)
    if took is not None:
        took.vector, took.bm25 = between - began, time.perf_counter() - between
    return entry_ids


async def _write(
    conn: Connection, place: Place, model: Model, texts: Sequence[Indexable]
) -> tuple[list[int], list[list[int]]]:
    """Write all of texts but their keywords; return the ids of their entries and passages."""
    for text in texts:
        if text.vectors.shape != (len(text.passages), model.dimension):
            raise ModelMismatch(
                f"{len(text.passages)} passages and vectors of shape {text.vectors.shape} do not"
                f" fit {model.name}, which has {model.dimension} numbers."
            )
    model_id = await _begin(conn, place, model)
    if not texts:
        return [], []
    entry_ids = await _write_entries(conn, place, [text.entry for text in texts])
    chunk_ids = await _write_chunks(conn, place, entry_ids, texts)
    written = [(e, c) for e, ids in zip(entry_ids, chunk_ids, strict=True) for c in ids]
    vectors = np.concatenate([text.vectors for text in texts])
    await _write_vectors(conn, place, model_id, written, vectors)
    return entry_ids, chunk_ids


async def known_vectors(
    conn: Connection, organisation_id: OrganisationId, model: Model, hashes: Sequence[bytes]
) -> dict[bytes, NDArray[np.float32]]:
    """Return the vectors that need not be made again, by fingerprint."""
    model_id = await _find_model(conn, organisation_id, model)
    if model_id is None or not hashes:
        return {}
    rows = await queries.known_vectors(
        conn, hashes=hashes, organisation_id=organisation_id, model_id=model_id
    )
    return {row.hash: np.array(row.numbers, np.float32) for row in rows}


async def model_of(conn: Connection, source_id: SourceId, generation: int) -> Model | None:
    """The model of a source's generation; None before its first text."""
    row = await queries.generation_model(conn, source_id=source_id, generation=generation)
    return None if row is None else Model(row.name, row.dimension, row.digest)


async def swap(conn: Connection, source_id: SourceId, generation: int) -> bool:
    """Search this generation from now on; False when a newer one is searched already.

    Older ones are unseen at once. What a moment does not delete of them, maintenance does.
    """
    swapped = await queries.swap_generation(conn, source_id=source_id, generation=generation)
    if swapped:
        await _drop_older(conn, source_id)
    return bool(swapped)


async def forget(
    conn: Connection, source_id: SourceId, uris: Sequence[str], generation: int | None = None
) -> int:
    """Remove texts of a source, of one generation or of all; return how many there were."""
    if generation is None:
        return await queries.drop_entries_of_all(conn, source_id=source_id, uris=uris)
    return await queries.drop_entries(conn, source_id=source_id, generation=generation, uris=uris)


async def drop_older_generations(database: Database) -> int:
    """Delete what swaps have left behind; the next call takes up what is left."""
    async with database.system_tx() as conn:
        sources = await queries.sources_with_older_ones(conn, most=10)
    dropped = 0
    for source_id in sources:
        async with database.system_tx() as conn:
            dropped += await _drop_older(conn, SourceId(source_id))
    return dropped


async def _drop_older(conn: Connection, source_id: SourceId) -> int:
    dropped = await queries.drop_older_entries(conn, source_id=source_id, most=_AT_ONCE)
    await queries.drop_older_generations(conn, source_id=source_id)
    return dropped


async def _find_model(
    conn: Connection, organisation_id: OrganisationId, model: Model
) -> int | None:
    return await queries.find_model(
        conn,
        organisation_id=organisation_id,
        name=model.name,
        dimension=model.dimension,
        digest=model.digest,
    )


async def _begin(conn: Connection, place: Place, model: Model) -> int:
    """Return the model's number, noting it for the generation; refuse a second model."""
    model_id = await _find_model(conn, place.organisation_id, model)
    if model_id is None:
        await queries.add_model(
            conn,
            organisation_id=place.organisation_id,
            name=model.name,
            dimension=model.dimension,
            digest=model.digest,
        )
        model_id = await _find_model(conn, place.organisation_id, model)
    if model_id is None:
        raise InvalidInput("This organisation's models cannot be seen from here.")
    await queries.begin_generation(
        conn,
        source_id=place.source_id,
        generation=place.generation,
        organisation_id=place.organisation_id,
        model_id=model_id,
    )
    begun = await queries.generation_model(
        conn, source_id=place.source_id, generation=place.generation
    )
    if begun is None or begun.model_id != model_id:
        other = "another model" if begun is None else f"{begun.name} ({begun.dimension} numbers)"
        raise ModelMismatch(
            f"Generation {place.generation} of this source was begun with {other}, and"
            f" {model.name} ({model.dimension} numbers) cannot be mixed with it: use a new generation."
        )
    return model_id


async def _write_entries(conn: Connection, place: Place, entries: Sequence[Entry]) -> list[int]:
    uris = [one.uri for one in entries]
    if len(set(uris)) < len(uris):
        raise InvalidInput("One text is there twice.")
    await queries.drop_entries(
        conn, source_id=place.source_id, generation=place.generation, uris=uris
    )
    rows = await queries.add_entries(
        conn,
        organisation_id=place.organisation_id,
        source_id=place.source_id,
        generation=place.generation,
        uris=uris,
        paths=[one.path for one in entries],
        titles=[one.title for one in entries],
        languages=[_primary(one.language) for one in entries],
        content_types=[one.content_type for one in entries],
        page_ids=[one.page_id for one in entries],
        version_ids=[one.version_id for one in entries],
        content_hashes=[one.content_hash for one in entries],
        markdowns=[one.markdown for one in entries],
        dates=[one.dated_at for one in entries],
    )
    ids = {row.uri: row.entry_id for row in rows}
    return [ids[uri] for uri in uris]


async def _write_chunks(
    conn: Connection, place: Place, entry_ids: Sequence[int], texts: Sequence[Indexable]
) -> list[list[int]]:
    """Return the ids of each text's passages."""
    every = [
        (entry_id, ordinal, text.entry.title, passage)
        for entry_id, text in zip(entry_ids, texts, strict=True)
        for ordinal, passage in enumerate(text.passages)
    ]
    if not every:
        return [[] for _ in texts]
    rows = await queries.add_chunks(
        conn,
        organisation_id=place.organisation_id,
        source_id=place.source_id,
        entry_ids=[entry_id for entry_id, *_ in every],
        ordinals=[ordinal for _, ordinal, *_ in every],
        starts=[passage.start for *_, passage in every],
        ends=[passage.end for *_, passage in every],
        headings=[_HEADINGS_APART.join(passage.headings) for *_, passage in every],
        words=[passage.words for *_, passage in every],
        tokens=[passage.tokens for *_, passage in every],
        hashes=[fingerprint(title, passage) for _, _, title, passage in every],
    )
    ids = {(row.entry_id, row.ordinal): row.chunk_id for row in rows}
    return [
        [ids[entry_id, ordinal] for ordinal in range(len(text.passages))]
        for entry_id, text in zip(entry_ids, texts, strict=True)
    ]


async def _write_vectors(
    conn: Connection,
    place: Place,
    model_id: int,
    written: Sequence[tuple[int, int]],
    vectors: Vectors,
) -> None:
    """Write a vector for each chunk, of which there is its entry and its id."""
    if not written:
        return
    entry_ids, chunk_ids = zip(*written, strict=True)
    await queries.add_vectors(
        conn,
        organisation_id=place.organisation_id,
        model_id=model_id,
        dimension=vectors.shape[1],
        numbers=vectors.ravel().tolist(),
        chunk_ids=chunk_ids,
        entry_ids=entry_ids,
    )
