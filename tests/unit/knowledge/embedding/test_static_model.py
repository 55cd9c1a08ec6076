"""The light embedding model: offline, repeatable, and closer for what means about the same."""

import hashlib

import numpy as np

from trapline.knowledge.embedding.static_model import _WEIGHTS, StaticEmbedder, _folder

embedder = StaticEmbedder()


async def test_related_texts_are_closer_than_unrelated_ones() -> None:
    vectors = await embedder.embed(
        [
            "How do I open a file for reading?",
            "Reading from files with open()",
            "The cat sleeps on a warm sofa.",
        ]
    )
    assert vectors.shape == (3, embedder.model.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


async def test_a_text_has_the_same_vector_in_any_company() -> None:
    alone = await embedder.embed(["A sentence."])
    among = await embedder.embed(["Something long and other. " * 50, "A sentence.", ""])
    assert np.array_equal(alone[0], among[1])


async def test_nothing_and_rubbish_have_vectors_too() -> None:
    assert (await embedder.embed([])).shape == (0, embedder.model.dimension)
    empty, rubbish, huge = await embedder.embed(["", "\x00\ufffd\U0001f600", "x" * 1_000_000])
    assert not empty.any()
    assert np.isfinite(rubbish).all()
    assert np.isfinite(huge).all()


def test_the_weights_are_those_that_the_name_stands_for() -> None:
    digest = hashlib.sha256((_folder() / _WEIGHTS).read_bytes()).hexdigest()
    assert digest.startswith(embedder.model.digest)
