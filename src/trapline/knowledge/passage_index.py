"""The passage index: entries with their passages, postings and vectors, written in one transaction.

Texts of a source belong to a generation. The source's own `generation` is the one that is searched;
a later one is written beside it, unseen, until `swap_generation` makes it the current one.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trapline.db.connection import Connection
from trapline.db.pool import Database
from trapline.errors import InvalidInput, ModelMismatch
from trapline.knowledge.chunking import Passage
from trapline.knowledge.embedding.embedder import EmbeddingModel, Vectors
from trapline.knowledge.keyword import index_writer
from trapline.knowledge.keyword.analysis import language_of
from trapline.knowledge.keyword.index_writer import ChunkText
from trapline.knowledge.sql import keyword as keyword_queries
from trapline.knowledge.sql import passage_index as queries
from trapline.model import OrganisationId, PageId, SourceId

# How many old texts a swap deletes itself, and maintenance at a time: a second's work.
_AT_ONCE: Final = 2_000
_HEADINGS_APART: Final = "\x1f"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """One text of a source: a file, or a page as it was.

    `markdown` is the text that passages are slices of; None where the page's version holds it.
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
class IndexableText:
    """A text with its passages, and one row of `vectors` for each of them."""

    entry: IndexEntry
    passages: Sequence[Passage]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class SourceGeneration:
    """The generation of a source that texts are written to."""

    organisation_id: OrganisationId
    source_id: SourceId
    generation: int


@dataclass(slots=True)
class IndexTimings:
    """How many seconds it took to write passages with their vectors, and postings."""

    vector: float = 0.0
    bm25: float = 0.0


def indexed_text(title: str | None, passage: Passage) -> str:
    """The text of a passage that is embedded and indexed: title, headings, words."""
    above = [one for one in passage.headings if one != title]
    lead = " / ".join([*([title] if title else []), *above])
    return f"{lead}\n{passage.words}" if lead else passage.words


def fingerprint(title: str | None, passage: Passage) -> bytes:
    """Passages with the same fingerprint have the same vector."""
    return hashlib.sha256(indexed_text(title, passage).encode("utf-8", "surrogatepass")).digest()


def _primary(tag: str | None) -> str:
    """`de` of `de-AT`; `xx` if the language is unknown."""
    return (tag or "xx").lower().replace("_", "-").partition("-")[0]


async def store_entries(
    conn: Connection,
    target: SourceGeneration,
    texts: Sequence[IndexableText],
    model: EmbeddingModel,
) -> list[int]:
    """Write texts in the caller's transaction; return their entries' ids, in order.

    A text whose URI the generation has already replaces it. ModelMismatch when the generation was
    begun with another model.
    """
    return await store_batches(conn, [(target, model, texts)])


async def store_batches(
    conn: Connection,
    batches: Iterable[tuple[SourceGeneration, EmbeddingModel, Sequence[IndexableText]]],
    timings: IndexTimings | None = None,
) -> list[int]:
    """Write texts of several sources; each organisation gets one segment for each language of all."""
    began = time.perf_counter()
    entry_ids: list[int] = []
    words: dict[tuple[OrganisationId, str], dict[int, ChunkText]] = {}
    for target, model, given in batches:
        texts = await _with_languages(conn, target.organisation_id, given)
        written, chunk_ids = await _write(conn, target, model, texts)
        entry_ids += written
        for text, entry_id, ids in zip(texts, written, chunk_ids, strict=True):
            key = target.organisation_id, language_of(text.entry.language)
            words.setdefault(key, {}).update(
                (chunk_id, ChunkText(entry_id, indexed_text(text.entry.title, passage)))
                for chunk_id, passage in zip(ids, text.passages, strict=True)
            )
    between = time.perf_counter()
    for (organisation_id, language), found in sorted(words.items(), key=lambda item: item[0]):
        await index_writer.add_segment(conn, organisation_id, language, found)
    if timings is not None:
        timings.vector, timings.bm25 = between - began, time.perf_counter() - between
    return entry_ids


async def _with_languages(
    conn: Connection, organisation_id: OrganisationId, texts: Sequence[IndexableText]
) -> Sequence[IndexableText]:
    """Give texts of unknown language the organisation's main one.

    Most are too short to tell, such as a title. Without the rules of a language "compilers" would not
    find "compiler", and their words would be counted apart from those of all other texts.
    """
    if all(text.entry.language for text in texts):
        return texts
    main = await keyword_queries.main_language(conn, organisation_id=organisation_id)
    if main is None:
        known = Counter(text.entry.language for text in texts if text.entry.language)
        main = known.most_common(1)[0][0] if known else None
    return [
        text if text.entry.language else replace(text, entry=replace(text.entry, language=main))
        for text in texts
    ]


async def _write(
    conn: Connection,
    target: SourceGeneration,
    model: EmbeddingModel,
    texts: Sequence[IndexableText],
) -> tuple[list[int], list[list[int]]]:
    """Write texts without their postings; return the ids of their entries and passages."""
    for text in texts:
        if text.vectors.shape != (len(text.passages), model.dimension):
            raise ModelMismatch(
                f"{len(text.passages)} passages and vectors of shape {text.vectors.shape} do not"
                f" fit {model.name}, which has {model.dimension} numbers."
            )
    model_id = await _begin(conn, target, model)
    if not texts:
        return [], []
    entry_ids = await _write_entries(conn, target, [text.entry for text in texts])
    chunk_ids = await _write_chunks(conn, target, entry_ids, texts)
    written = [(e, c) for e, ids in zip(entry_ids, chunk_ids, strict=True) for c in ids]
    vectors = np.concatenate([text.vectors for text in texts])
    await _write_vectors(conn, target, model_id, written, vectors)
    return entry_ids, chunk_ids


async def reusable_vectors(
    conn: Connection,
    organisation_id: OrganisationId,
    model: EmbeddingModel,
    hashes: Sequence[bytes],
) -> dict[bytes, NDArray[np.float32]]:
    """Return the vectors that exist already, by fingerprint."""
    model_id = await _find_model(conn, organisation_id, model)
    if model_id is None or not hashes:
        return {}
    rows = await queries.reusable_vectors(
        conn, hashes=hashes, organisation_id=organisation_id, model_id=model_id
    )
    return {row.hash: np.array(row.numbers, np.float32) for row in rows}


async def swap_generation(conn: Connection, source_id: SourceId, generation: int) -> bool:
    """Search this generation from now on; False when a newer one is searched already.

    Older ones are unseen at once. Maintenance deletes what the swap itself does not.
    """
    swapped = await queries.swap_generation(conn, source_id=source_id, generation=generation)
    if swapped:
        await _drop_older(conn, source_id)
    return bool(swapped)


async def delete_entries(conn: Connection, source_id: SourceId, uris: Sequence[str]) -> int:
    """Delete texts of a source, of all its generations; return their number."""
    return await queries.drop_entries_of_all_generations(conn, source_id=source_id, uris=uris)


async def drop_older_generations(database: Database) -> int:
    """Delete a batch of what swaps left; the next call deletes more."""
    async with database.system_tx() as conn:
        sources = await queries.sources_with_old_generations(conn, most=10)
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
    conn: Connection, organisation_id: OrganisationId, model: EmbeddingModel
) -> int | None:
    return await queries.find_model(
        conn,
        organisation_id=organisation_id,
        name=model.name,
        dimension=model.dimension,
        digest=model.digest,
    )


async def _begin(conn: Connection, target: SourceGeneration, model: EmbeddingModel) -> int:
    """Return the model's id and record it for the generation; ModelMismatch if that has another."""
    model_id = await _find_model(conn, target.organisation_id, model)
    if model_id is None:
        await queries.add_model(
            conn,
            organisation_id=target.organisation_id,
            name=model.name,
            dimension=model.dimension,
            digest=model.digest,
        )
        model_id = await _find_model(conn, target.organisation_id, model)
    if model_id is None:
        raise InvalidInput("The models of this organisation cannot be read in this transaction.")
    await queries.begin_generation(
        conn,
        source_id=target.source_id,
        generation=target.generation,
        organisation_id=target.organisation_id,
        model_id=model_id,
    )
    begun = await queries.generation_model(
        conn, source_id=target.source_id, generation=target.generation
    )
    if begun is None or begun.model_id != model_id:
        other = "another model" if begun is None else f"{begun.name} ({begun.dimension} numbers)"
        raise ModelMismatch(
            f"Generation {target.generation} of this source was begun with {other}, and"
            f" {model.name} ({model.dimension} numbers) cannot be mixed with it: use a new generation."
        )
    return model_id


async def _write_entries(
    conn: Connection, target: SourceGeneration, entries: Sequence[IndexEntry]
) -> list[int]:
    uris = [one.uri for one in entries]
    if len(set(uris)) < len(uris):
        raise InvalidInput("The batch has one URI twice.")
    await queries.drop_entries(
        conn, source_id=target.source_id, generation=target.generation, uris=uris
    )
    rows = await queries.add_entries(
        conn,
        organisation_id=target.organisation_id,
        source_id=target.source_id,
        generation=target.generation,
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
    conn: Connection,
    target: SourceGeneration,
    entry_ids: Sequence[int],
    texts: Sequence[IndexableText],
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
        organisation_id=target.organisation_id,
        source_id=target.source_id,
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
    target: SourceGeneration,
    model_id: int,
    written: Sequence[tuple[int, int]],
    vectors: Vectors,
) -> None:
    """Write the vectors of chunks, given as pairs of entry and chunk id."""
    if not written:
        return
    entry_ids, chunk_ids = zip(*written, strict=True)
    await queries.add_vectors(
        conn,
        organisation_id=target.organisation_id,
        model_id=model_id,
        dimension=vectors.shape[1],
        numbers=vectors.ravel().tolist(),
        chunk_ids=chunk_ids,
        entry_ids=entry_ids,
    )
