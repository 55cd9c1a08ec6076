"""The learned part: how likely each block of a page is main content, and what type the page has.

A small network, evaluated with numpy. Its first layer looks at each block alone; the second also
sees the mean of the first over the groups that a block belongs to (its page, its like, its list,
its record, its container, its section, its neighbours), so that cards of a grid or posts of a
thread are kept or dropped together. Networks that were trained apart can be averaged; one is shipped.
"""

import io
import zlib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from math import exp
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from trapline import native
from trapline.extract.html.outline import Floats, Ints, Outline
from trapline.extract.main_content.features import PAGE_SIZE
from trapline.extract.main_content.model_input import Features, read_features
from trapline.extract.main_content.vocabulary import Scores, Vocabulary
from trapline.extract.metadata.page_type_hints import PageHints
from trapline.model import PageType

MODEL: Final = "model.npz"
_BOUND: Final = 4.0
_SUREST: Final = 30.0
_WINDOW: Final = 2
# Networks that are trained towards F1 are surer than they should be, most of all where like pages
# want opposite things: the grid, or the text below it.
_SOFTENED: Final = 0.7
_SOFTENED_GRID: Final = 0.5
# There, what is said of the whole page is half learned by heart: less is made of it.
_UNHEARD_OF_GRID: Final = 0.7
# Elsewhere too much is the commoner mistake.
_RECALL: Final = 0.8
_RECALL_OF_GRID: Final = 1.0
_SCORE_STEP: Final = 0.05
_LEXICONS: Final = ("names", "texts", "headings", "prose")
TYPES: Final = (
    PageType.ARTICLE,
    PageType.COLLECTION,
    PageType.DOCUMENTATION,
    PageType.FORUM,
    PageType.LISTING,
    PageType.PRODUCT,
    PageType.SERVICE,
)
_COLLECTION: Final = TYPES.index(PageType.COLLECTION)
_LISTING: Final = TYPES.index(PageType.LISTING)


@dataclass(frozen=True, slots=True)
class Group:
    """A partition of the blocks: their order by group, where groups start, and each one's group."""

    order: Ints
    starts: Ints
    of_block: Ints

    @classmethod
    def of(cls, keys: npt.NDArray[Any]) -> "Group":
        order = np.argsort(keys, kind="stable")
        arranged = keys[order]
        first = np.ones(len(keys), dtype=np.bool_)
        first[1:] = arranged[1:] != arranged[:-1]
        of_block = np.empty(len(keys), dtype=np.intp)
        of_block[order] = np.cumsum(first) - 1
        return cls(order, np.flatnonzero(first), of_block)

    def means(self, weighted: Floats, weights: Floats) -> Floats:
        """The mean of each block's group, of values that are multiplied by their weights already."""
        sums = np.add.reduceat(weighted.take(self.order, axis=0), self.starts)
        totals = np.add.reduceat(weights.take(self.order), self.starts)
        means: Floats = np.asarray(sums / totals[:, None], dtype=np.float32)
        return means.take(self.of_block, axis=0)


def neighbour_means(values: Floats) -> Floats:
    """The mean over a block and the blocks up to two places from it."""
    running = np.concatenate(
        (np.zeros((1, values.shape[1]), np.float32), np.cumsum(values, axis=0))
    )
    place = np.arange(len(values))
    upper = np.minimum(place + _WINDOW + 1, len(values))
    lower = np.maximum(place - _WINDOW, 0)
    means = (running[upper] - running[lower]) / (upper - lower)[:, None]
    return np.asarray(means, dtype=np.float32)


def running_means(weighted: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The weighted means over a block and all before it, and over it and all after it."""
    both = np.concatenate((weighted, weights[:, None]), axis=1)
    before = np.cumsum(both, axis=0, dtype=np.float64)
    after = before[-1] - before + both
    first: Floats = (before[:, :-1] / before[:, -1:]).astype(np.float32)
    second: Floats = (after[:, :-1] / after[:, -1:]).astype(np.float32)
    return first, second


def contexts(shared: Floats, weights: Floats, keys: Ints) -> Floats:
    """What the page, a block's groups, its neighbours, those before and those after say on average."""
    weighted: Floats = shared * weights[:, None]
    groups = map(Group.of, keys)
    return np.concatenate(
        (
            np.broadcast_to(weighted.sum(axis=0) / weights.sum(), shared.shape),
            *(group.means(weighted, weights) for group in groups),
            neighbour_means(shared),
            *running_means(weighted, weights),
        ),
        axis=1,
    )


@dataclass(frozen=True, slots=True)
class Network:
    alone: Floats
    alone_bias: Floats
    shared: Floats
    together: Floats
    together_bias: Floats
    out: Floats
    out_bias: Floats

    @property
    def parts(self) -> tuple[Floats, ...]:
        return (
            self.alone, self.alone_bias, self.shared, self.together,
            self.together_bias, self.out, self.out_bias,
        )  # fmt: skip

    def logits(self, matrix: Floats, page: Floats, keys: Ints, weights: Floats) -> Floats:
        own, width = matrix.shape[1], self.alone.shape[1]
        alone: Floats = matrix @ self.alone[:own]
        alone += page @ self.alone[own:] + self.alone_bias
        np.maximum(alone, 0, out=alone)
        context = contexts(alone @ self.shared, weights, keys)
        together: Floats = alone @ self.together[:width]
        together += context @ self.together[width:]
        together += self.together_bias
        np.maximum(together, 0, out=together)
        return np.asarray((together @ self.out)[:, 0] + self.out_bias, dtype=np.float32)


class Ensemble:
    """Several networks, whose answers are averaged."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self.networks = networks

    def logits(self, matrix: Floats, page: Floats, keys: Ints, weights: Floats) -> Floats:
        """The mean of the networks' answers."""
        answers = [network.logits(matrix, page, keys, weights) for network in self.networks]
        return answers[0] if len(answers) == 1 else np.mean(answers, axis=0, dtype=np.float32)


class PageScores(NamedTuple):
    scores: Floats
    """For each block how likely it is main content."""
    recall: float
    """How much recall counts beside precision when blocks are chosen."""


@dataclass(frozen=True)
class Scorer:
    vocabulary: Vocabulary
    mean: Floats
    scale: Floats
    networks: Ensemble
    type_weights: tuple[Floats, ...]

    def features(self, outline: Outline, said: PageHints) -> Features:
        """The model's input for a page."""
        width = len(self.mean) - PAGE_SIZE - len(said.hints)
        return read_features(outline, said, self.vocabulary, width)

    def judge(self, features: Features, odds: list[float] | None = None) -> PageScores:
        """`odds` are those of the page's types, if they are known."""
        grid = _grid_chance(odds or self.odds(features))
        share = 1 - _UNHEARD_OF_GRID * grid
        factor = _SOFTENED + (_SOFTENED_GRID - _SOFTENED) * grid
        scores = block_scores(self, features, share, factor)
        return PageScores(scores, _RECALL + (_RECALL_OF_GRID - _RECALL) * grid)

    def nearer_to_average(self, features: Features, share: float) -> Features:
        """The features, with less said of the page: a share of what tells it from the average page."""
        average = self.mean[-len(features.page) :]
        page = average + np.float32(share) * (features.page - average)
        return replace(features, page=page)

    def standardised(self, features: Features) -> Floats:
        mean, scale = (part[: -len(features.page)] for part in (self.mean, self.scale))
        matrix: Floats = (features.matrix - mean) * scale
        return np.clip(matrix, -_BOUND, _BOUND, out=matrix)

    def standardised_page(self, features: Features) -> Floats:
        size = len(features.page)
        page: Floats = (features.page - self.mean[-size:]) * self.scale[-size:]
        # `np.clip` takes longer than all the rest.
        return np.minimum(np.maximum(page, -_BOUND, out=page), _BOUND, out=page)

    def odds(self, features: Features) -> list[float]:
        """What speaks for each type of page."""
        hidden, hidden_bias, out, out_bias = self.type_weights
        inner = np.maximum(self.standardised_page(features) @ hidden + hidden_bias, 0)
        odds: list[float] = (inner @ out + out_bias).tolist()
        return odds

    @cached_property
    def compiled_networks(self) -> tuple[object, ...]:
        return tuple(
            compiled_network(len(self.type_weights[0]), self.mean, self.scale, *network.parts)
            for network in self.networks.networks
        )


def block_scores(scorer: Scorer, features: Features, share: float, factor: float) -> Floats:
    """How likely each block is main content, with a share of what the page says of itself."""
    features = scorer.nearer_to_average(features, share)
    matrix, page = scorer.standardised(features), scorer.standardised_page(features)
    weights = np.sqrt(features.blocks.words).astype(np.float32)
    logits = scorer.networks.logits(matrix, page, features.keys, weights)
    softened = np.clip(logits * np.float32(factor), -_SUREST, _SUREST)
    return np.asarray(1 / (1 + np.exp(-softened)), dtype=np.float32)


def compiled_scores(scorer: Scorer, features: Features, share: float, factor: float) -> Floats:
    matrix = np.ascontiguousarray(features.matrix, np.float32)
    scores = native.library.scores(
        scorer.compiled_networks, matrix, features.page, features.keys, features.blocks.words,
        share, factor,
    )  # fmt: skip
    return np.frombuffer(scores, np.float32)


def compiled_network(page: int, *arrays: Floats, wide: bool = True) -> object:
    """A network for `compiled_scores`, from the mean, the scale and its weights.

    `page` of its columns are of the page. The widest registers are used unless `wide` is false.
    """
    contiguous = (np.ascontiguousarray(array, np.float32) for array in arrays)
    return native.library.network(page, _BOUND, wide, *contiguous)


def likeliest_type(odds: list[float]) -> PageType:
    return TYPES[odds.index(max(odds))]


def _grid_chance(odds: list[float]) -> float:
    """How likely a page is a grid of cards or a list."""
    likeliest = max(odds)
    chances = [exp(value - likeliest) for value in odds]
    return (chances[_COLLECTION] + chances[_LISTING]) / sum(chances)


@cache
def shipped_scorer() -> Scorer:
    """The model that comes with the package."""
    return load_scorer(files("trapline.extract").joinpath(MODEL).read_bytes())


def load_scorer(data: bytes) -> Scorer:
    with np.load(io.BytesIO(data)) as arrays:
        networks = tuple(
            Network(*(arrays[f"net{number}_{part}"].astype(np.float32) for part in range(7)))
            for number in range(int(arrays["networks"]))
        )
        return Scorer(
            vocabulary=Vocabulary.of(
                *(unpack_scores(arrays[name].tobytes()) for name in _LEXICONS)
            ),
            mean=arrays["mean"],
            scale=arrays["scale"],
            networks=Ensemble(networks),
            type_weights=tuple(arrays[f"type_{part}"] for part in range(4)),
        )


def dump_scorer(scorer: Scorer) -> bytes:
    """The model as one small file; weights at half precision, scores in steps of 0.05."""
    arrays: dict[str, Any] = {"mean": scorer.mean, "scale": scorer.scale}
    arrays["networks"] = np.int64(len(scorer.networks.networks))
    for number, network in enumerate(scorer.networks.networks):
        parts = enumerate(network.parts)
        arrays |= {f"net{number}_{place}": part.astype(np.float16) for place, part in parts}
    arrays |= {f"type_{number}": part for number, part in enumerate(scorer.type_weights)}
    for name, scores in zip(_LEXICONS, scorer.vocabulary.scores, strict=True):
        arrays[name] = np.frombuffer(pack_scores(scores), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def pack_scores(scores: Scores) -> bytes:
    kept = {word: round(score / _SCORE_STEP) for word, score in sorted(scores.items())}
    lines = (f"{word}\t{steps}" for word, steps in kept.items() if steps)
    return zlib.compress("\n".join(lines).encode(), 9)


def unpack_scores(data: bytes) -> Scores:
    text = zlib.decompress(data).decode()
    lines = (line.rpartition("\t") for line in text.split("\n") if line)
    return {word: int(steps) * _SCORE_STEP for word, _, steps in lines}


if native.available:
    block_scores = compiled_scores
