"""Gradient descent for the block network, by hand: numpy, and sparse matrices for the groups.

The loss is the cross entropy of the blocks plus, for each page, one minus the expected word-F1 of
taking each block with its own probability: pages count alike, as they do in the score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from benchmarks.extractor.samples import Sample
from trapline.extract.outline import Floats
from trapline.extract.scorer import Network

Array = npt.NDArray[np.float32]
Starts = npt.NDArray[np.int64]
Step = Callable[[Array], Array]
Sums = Callable[[Array, Starts], Array]
Context = list[tuple[Step, Step]]
"""What blocks are told of others, as a function of what those say; and its transpose."""

_ALONE, _SHARED, _TOGETHER = 64, 16, 48
_BATCH = 16
_RATE = 2e-3
_DROP = 0.15
_DECAY = 1e-4
_HIDE_OWN = 0.05
_HIDE_PAGE = 0.3
_WARM_STEPS = 100
_TRUSTED_EPOCHS = 5
_BELIEVED = 0.4
_WINDOW = 2
_CONTEXTS = 10


@dataclass(frozen=True)
class Loss:
    """How much each part of the loss counts."""

    entropy: float = 1.0
    f1: float = 1.0


@dataclass(frozen=True)
class Batch:
    matrix: Array
    labels: Array
    words: Array
    entropy: Array
    page: npt.NDArray[np.int64]
    context: Context


@dataclass(frozen=True)
class Prepared:
    """One page, ready for many epochs."""

    matrix: Array
    labels: Array
    words: Array
    groups: tuple[npt.NDArray[np.int64], ...]
    window: sparse.csr_matrix

    @classmethod
    def of(cls, sample: Sample, matrix: Floats) -> "Prepared":
        size = len(sample.blocks)
        page = np.zeros(size, dtype=np.int64)
        return cls(
            matrix,
            sample.labels.astype(np.float32),
            sample.blocks.words.astype(np.float32),
            (page, *(group.of_block for group in sample.groups)),
            _window(size),
        )


def _window(size: int) -> sparse.csr_matrix:
    reach = [step for step in range(-_WINDOW, _WINDOW + 1) if abs(step) < size]
    bands = sparse.diags([np.ones(size - abs(step), np.float32) for step in reach], reach)
    scale = 1 / np.asarray(bands.sum(axis=1)).ravel()
    return sparse.csr_matrix(sparse.diags(scale.astype(np.float32)) @ bands)


def _batch(pages: Sequence[Prepared], masks: Array) -> Batch:
    words = np.concatenate([page.words for page in pages])
    weights = [page.words**0.7 for page in pages]
    return Batch(
        matrix=np.concatenate([p.matrix * mask for p, mask in zip(pages, masks, strict=True)]),
        labels=np.concatenate([page.labels for page in pages]),
        words=words,
        entropy=np.concatenate([weight / weight.sum() for weight in weights]),
        page=np.repeat(np.arange(len(pages)), [len(page.words) for page in pages]),
        context=_context(pages, np.sqrt(words)),
    )


def _context(pages: Sequence[Prepared], weights: Array) -> Context:
    size = len(weights)
    pairs: Context = []
    places = np.arange(size + 1)
    for kind in range(_CONTEXTS - 3):
        offset, numbers = 0, []
        for page in pages:
            numbers.append(page.groups[kind] + offset)
            offset += int(page.groups[kind].max()) + 1
        group = np.concatenate(numbers)
        spread = sparse.csr_matrix((np.ones(size, np.float32), group, places), (size, offset))
        total = np.bincount(group, weights, offset).astype(np.float32)
        mean = sparse.csr_matrix((weights / total[group], group, places), (size, offset))
        pairs.append(_through(mean.T.tocsr(), spread))
    pairs.append(_through(sparse.block_diag([page.window for page in pages], format="csr")))
    starts = np.cumsum([0, *(len(page.words) for page in pages)])
    before = _one_sided(weights, starts, _running, _remaining)
    return [*pairs, before, _one_sided(weights, starts, _remaining, _running)]


def _through(*matrices: sparse.csr_matrix) -> tuple[Step, Step]:
    def forward(values: Array) -> Array:
        for matrix in matrices:
            values = matrix @ values
        return values

    def backward(values: Array) -> Array:
        for matrix in reversed(matrices):
            values = matrix.T @ values
        return values

    return forward, backward


def _one_sided(weights: Array, starts: Starts, there: Sums, back: Sums) -> tuple[Step, Step]:
    """The mean over a block and all that come before it on its page; or all that come after."""
    total = there(weights[:, None], starts)

    def forward(values: Array) -> Array:
        return there(values * weights[:, None], starts) / total

    def backward(values: Array) -> Array:
        return back(values / total, starts) * weights[:, None]

    return forward, backward


def _running(values: Array, starts: Starts) -> Array:
    """Sums from the start of each page on."""
    sums = np.concatenate((np.zeros((1, values.shape[1])), np.cumsum(values, 0, np.float64)))
    before = np.repeat(sums[starts[:-1]], np.diff(starts), axis=0)
    return (sums[1:] - before).astype(np.float32)


def _remaining(values: Array, starts: Starts) -> Array:
    """Sums up to the end of each page."""
    return _running(values[::-1], starts[-1] - starts[::-1])[::-1]


class Trainer:
    """A network in training: its parameters and their running moments."""

    def __init__(self, features: int, page_features: int, seed: int, loss: Loss) -> None:
        self._page_features = page_features
        self._loss = loss
        self._random = np.random.default_rng(seed)
        joined = _ALONE + _CONTEXTS * _SHARED
        self.weights = [
            self._initial(features, _ALONE), np.zeros(_ALONE, np.float32),
            self._initial(_ALONE, _SHARED),
            self._initial(joined, _TOGETHER), np.zeros(_TOGETHER, np.float32),
            self._initial(_TOGETHER, 1) / 2, np.zeros(1, np.float32),
        ]  # fmt: skip
        self._first = [np.zeros_like(weight) for weight in self.weights]
        self._second = [np.zeros_like(weight) for weight in self.weights]
        self._step = 0

    def _initial(self, rows: int, columns: int) -> Array:
        values = self._random.standard_normal((rows, columns)) * np.sqrt(2 / rows)
        return values.astype(np.float32)

    def train(self, pages: Sequence[Prepared], epochs: int) -> Network:
        steps = epochs * -(-len(pages) // _BATCH)
        order = np.arange(len(pages))
        for epoch in range(epochs):
            if epoch == _TRUSTED_EPOCHS:
                order = self._believable(pages)
                steps = self._step + (epochs - epoch) * -(-len(order) // _BATCH)
            self._random.shuffle(order)
            for start in range(0, len(order), _BATCH):
                taken = [pages[number] for number in order[start : start + _BATCH]]
                batch = _batch(taken, self._masks(len(taken), pages[0].matrix.shape[1]))
                self._descend(self._gradients(batch), steps)
        return Network(*self.weights)

    def _believable(self, pages: Sequence[Prepared]) -> npt.NDArray[np.int64]:
        """The pages whose truth can be learned at all.

        Some truths stop halfway or name another part of the page than those of pages like it.
        What contradicts the rest is learned last: whoever has not been by now is left out.
        """
        scores = np.array([self._expected_f1(page) for page in pages])
        return np.flatnonzero(scores >= _BELIEVED)

    def _expected_f1(self, page: Prepared) -> float:
        batch = _batch([page], np.ones((1, page.matrix.shape[1]), np.float32))
        alone_w, alone_b, shared_w, together_w, together_b, out_w, out_b = self.weights
        alone = np.maximum(batch.matrix @ alone_w + alone_b, 0)
        shared = alone @ shared_w
        seen = np.concatenate([alone, *(tell(shared) for tell, _ in batch.context)], axis=1)
        together = np.maximum(seen @ together_w + together_b, 0)
        chance = 1 / (1 + np.exp(-np.clip((together @ out_w)[:, 0] + out_b[0], -30, 30)))
        hits = float((chance * page.labels * page.words).sum())
        return 2 * hits / float(((chance + page.labels) * page.words).sum())

    def _masks(self, pages: int, features: int) -> Array:
        """Which features each page shows this time; a hidden one takes its mean, which is zero.

        What is said of whole pages is hidden more often: a thousand pages are easily told apart
        by it, and then learned by heart.
        """
        shown = self._random.random((pages, features), np.float32)
        hiding = np.full(features, _HIDE_OWN, np.float32)
        hiding[-self._page_features :] = _HIDE_PAGE
        return (shown >= hiding).astype(np.float32)

    def _dropped(self, values: Array) -> tuple[Array, Array]:
        kept = (self._random.random(values.shape, np.float32) > _DROP) / np.float32(1 - _DROP)
        return values * kept, kept

    def _gradients(self, batch: Batch) -> list[Array]:
        alone_w, alone_b, shared_w, together_w, together_b, out_w, out_b = self.weights
        alone_in = batch.matrix @ alone_w + alone_b
        alone, alone_kept = self._dropped(np.maximum(alone_in, 0))
        shared = alone @ shared_w
        seen = np.concatenate([alone, *(tell(shared) for tell, _ in batch.context)], axis=1)
        together_in = seen @ together_w + together_b
        together, together_kept = self._dropped(np.maximum(together_in, 0))
        slope = _slope((together @ out_w)[:, 0] + out_b[0], batch, self._loss)[:, None]

        to_together = (slope @ out_w.T) * together_kept * (together_in > 0)
        to_seen = to_together @ together_w.T
        to_shared = np.zeros_like(shared)
        for number, (_, untell) in enumerate(batch.context):
            part = slice(_ALONE + number * _SHARED, _ALONE + (number + 1) * _SHARED)
            to_shared += untell(to_seen[:, part])
        to_alone = (to_seen[:, :_ALONE] + to_shared @ shared_w.T) * alone_kept * (alone_in > 0)
        return [
            batch.matrix.T @ to_alone, to_alone.sum(axis=0),
            alone.T @ to_shared,
            seen.T @ to_together, to_together.sum(axis=0),
            together.T @ slope, slope.sum(axis=0),
        ]  # fmt: skip

    def _descend(self, gradients: list[Array], steps: int) -> None:
        """Adam with decoupled weight decay; the rate rises, then falls along a cosine."""
        self._step += 1
        fall = 0.5 * (1 + np.cos(np.pi * self._step / steps))
        rate = np.float32(_RATE * min(1, self._step / _WARM_STEPS) * fall)
        for weight, gradient, first, second in zip(
            self.weights, gradients, self._first, self._second, strict=True
        ):
            np.add(first, 0.1 * (gradient - first), out=first)
            np.add(second, 0.01 * (gradient**2 - second), out=second)
            mean = first / (1 - 0.9**self._step)
            spread = np.sqrt(second / (1 - 0.99**self._step)) + 1e-8
            decay = _DECAY * weight if weight.ndim > 1 else 0
            np.subtract(weight, rate * (mean / spread + decay), out=weight)


def _slope(logits: Array, batch: Batch, loss: Loss) -> Array:
    """Of the loss with respect to each logit."""
    chance = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
    pages = int(batch.page[-1]) + 1
    slope = loss.entropy * batch.entropy * (chance - batch.labels)
    hits = np.bincount(batch.page, chance * batch.words * batch.labels, pages)
    truth = np.bincount(batch.page, batch.words * batch.labels, pages)
    size = np.bincount(batch.page, chance * batch.words, pages) + truth + 1e-6
    gain = 2 * batch.words * (batch.labels * size[batch.page] - hits[batch.page])
    gain = gain / size[batch.page] ** 2 * (truth > 0)[batch.page]
    slope = slope - loss.f1 * gain * chance * (1 - chance)
    return (slope / pages).astype(np.float32)
