"""The compiled network judges as the one in numpy does, whatever its widths and its machine."""

from typing import Any

import numpy as np
import pytest

from tests.support.pure_python import needs_native, pure_python
from trapline import native
from trapline.extract.html.outline import Floats, Ints, Outline
from trapline.extract.main_content import scorer
from trapline.extract.main_content.blocks import Blocks
from trapline.extract.main_content.model_input import Features
from trapline.extract.main_content.vocabulary import Vocabulary

pytestmark = needs_native

python_scorer = pure_python("trapline.extract.main_content.scorer")

OWN, PAGE, TYPES = 13, 5, 7
CONTEXTS = 10
CLOSE = 1e-5
# Multiples of what goes into a register, and not.
WIDTHS = ((64, 16, 48), (20, 5, 17), (1, 1, 1), (33, 16, 7))
# Around what is looked at together: six rows, and two dozen.
COUNTS = (1, 2, 5, 6, 7, 23, 24, 25, 30, 49)


class Model:
    def __init__(self, widths: tuple[int, int, int], networks: int = 1) -> None:
        self.chance = np.random.default_rng(sum(widths))
        nothing: dict[str, float] = {}
        self.scorer = scorer.Scorer(
            Vocabulary.of(nothing, nothing, nothing, nothing),
            self.normal(OWN + PAGE),
            np.abs(self.normal(OWN + PAGE)),
            scorer.Ensemble(tuple(self.network(*widths) for _ in range(networks))),
            (self.normal(PAGE, 4), self.normal(4), self.normal(4, TYPES), self.normal(TYPES)),
        )

    def normal(self, *shape: int) -> Floats:
        return self.chance.normal(size=shape).astype(np.float32)

    def network(self, alone: int, shared: int, together: int) -> scorer.Network:
        return scorer.Network(
            self.normal(OWN + PAGE, alone),
            self.normal(alone),
            self.normal(alone, shared) / np.float32(alone),
            self.normal(alone + CONTEXTS * shared, together),
            self.normal(together),
            self.normal(together, 1) / np.float32(together),
            self.normal(1),
        )

    def features(self, count: int) -> Features:
        none: Ints = np.zeros(0, dtype=np.intp)
        words = self.chance.integers(1, 90, count)
        blocks = Blocks([""] * count, [""] * count, words, none, none, none, none, none)
        outline = Outline([], none, none, none, none, [], 0, cut=False)
        keys = self.chance.integers(-4, 2**40, (6, count)) % self.chance.integers(1, 9, (6, 1))
        matrix = self.normal(count, OWN) * np.float32(3)
        return Features(outline, blocks, matrix, self.normal(PAGE), keys)


def judged_by_numpy(model: Model, features: Features) -> scorer.PageScores:
    fields = vars(model.scorer)
    names = ("vocabulary", "mean", "scale", "networks", "type_weights")
    return python_scorer.Scorer(*map(fields.__getitem__, names)).judge(features)


@pytest.mark.parametrize("networks", [1, 3])
@pytest.mark.parametrize("widths", WIDTHS)
def test_scores_are_alike(widths: tuple[int, int, int], networks: int) -> None:
    model = Model(widths, networks)
    for count in COUNTS:
        features = model.features(count)
        expected, found = judged_by_numpy(model, features), model.scorer.judge(features)
        assert np.allclose(found.scores, expected.scores, atol=CLOSE), count
        assert found.recall == pytest.approx(expected.recall, abs=CLOSE)


@pytest.mark.parametrize("widths", WIDTHS)
def test_narrow_registers_give_the_same(widths: tuple[int, int, int]) -> None:
    model = Model(widths)
    given = (model.scorer.mean, model.scorer.scale, *model.scorer.networks.networks[0].parts)
    features = model.features(31)
    arrays = (features.matrix, features.page, features.keys, features.blocks.words)
    narrow, wide = (
        native.library.scores(
            (scorer.compiled_network(PAGE, *given, wide=wide),), *arrays, 0.5, 1.0
        )
        for wide in (False, True)
    )
    assert np.allclose(*(np.frombuffer(data, np.float32) for data in (narrow, wide)), atol=CLOSE)


def test_like_blocks_score_alike() -> None:
    """To the last bit, wherever they stand: a tie is broken by their order, not by rounding."""
    model = Model((64, 16, 48))
    (network,) = model.scorer.networks.networks
    network.together[64:] = 0  # What is said of others depends on the place.
    features = model.features(43)
    features.matrix[:] = features.matrix[0]
    scores = model.scorer.judge(features).scores
    assert 0 < scores[0] < 1
    assert (scores == scores[0]).all()


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5])
def test_what_is_nothing_is_passed_over(widths: tuple[int, int, int], kept: float) -> None:
    model = Model(widths)
    for count in COUNTS:
        features = model.features(count)
        features.matrix[model.chance.random(features.matrix.shape) >= kept] = 0
        expected, found = judged_by_numpy(model, features), model.scorer.judge(features)
        assert np.allclose(found.scores, expected.scores, atol=CLOSE), count


def test_scores_do_not_depend_on_what_the_blocks_beside_have() -> None:
    """To the last bit: of some blocks that are looked at together, one may lack what others have."""
    model = Model((64, 16, 48))
    (network,) = model.scorer.networks.networks
    network.together[64:] = 0
    features = model.features(43)
    features.matrix[model.chance.random(features.matrix.shape) < 0.7] = 0
    features.matrix[::4] = features.matrix[0]
    scores = model.scorer.judge(features).scores[::4]
    assert 0 < scores[0] < 1
    assert (scores == scores[0]).all()


def without(arrays: list[Any], number: int) -> list[Any]:
    return [array[:-1] if place == number else array for place, array in enumerate(arrays)]


def test_weights_that_do_not_fit() -> None:
    model = Model((20, 5, 17))
    parts = [part.ravel() for part in model.scorer.networks.networks[0].parts]
    given = [model.scorer.mean, model.scorer.scale, *parts]
    for number in range(len(given)):
        with pytest.raises(ValueError, match=r"different pages|another model"):
            scorer.compiled_network(PAGE, *without(given, number))
    for page in (-1, 0, OWN + PAGE, 2**62):
        with pytest.raises(ValueError, match=r"different pages|another model"):
            scorer.compiled_network(page, *given)


def test_arrays_of_another_page_or_model() -> None:
    model = Model((16, 16, 16))
    features = model.features(9)
    given = [features.matrix.ravel(), features.page, features.keys.ravel(), features.blocks.words]
    for number in range(len(given)):
        with pytest.raises(ValueError, match="different pages"):
            native.library.scores(model.scorer.compiled_networks, *without(given, number), 1.0, 1.0)
    with pytest.raises(ValueError, match="different pages"):
        native.library.scores(
            model.scorer.compiled_networks, *given[:3], -features.blocks.words, 1.0, 1.0
        )
    with pytest.raises(ValueError, match=r"incorrect name|invalid PyCapsule"):
        native.library.scores((native.library.lexicon({}),), *given, 1.0, 1.0)
