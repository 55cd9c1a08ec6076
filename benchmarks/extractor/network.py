"""Gradient descent for the block network, by hand, in numpy.

The loss is the cross entropy of the blocks plus, for each page, one minus the expected word-F1 of
taking each block with its own probability: pages count alike, as they do in the score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from benchmarks.extractor.samples import Sample
from trapline.extract.html.outline import Floats
from trapline.extract.main_content.scorer import Group, Network

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
# By a random byte: what is kept is raised, so that the sum is expected to stay.
_DROPPED = np.where(np.arange(256) < _DROP * 256, 0, 1 / (1 - _DROP)).astype(np.float32)


@dataclass(frozen=True)
class Loss:
    """How much each part of the loss counts."""

    entropy: float = 1.0
    f1: float = 1.0


@dataclass(frozen=True)
class Batch:
    own: Array
    about: Array
    """What is said of whole pages, a row a page."""
    page: Starts
    """The page of each block."""
    starts: Starts
    """Where the blocks of each page start, and where all end."""
    labels: Array
    words: Array
    entropy: Array
    context: Context


@dataclass(frozen=True)
class Prepared:
    """One page, ready for many epochs."""

    own: Array
    about: Array
    labels: Array
    words: Array
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, sample: Sample, matrix: Floats) -> "Prepared":
        """`matrix` has the features of blocks, then those of their page, normalised."""
        width = len(sample.reading.page)
        return cls(
            np.ascontiguousarray(matrix[:, :-width]),
            matrix[0, -width:],
            sample.labels.astype(np.float32),
            sample.blocks.words.astype(np.float32),
            sample.groups,
        )


def _batch(pages: Sequence[Prepared], shown_own: Array, shown_about: Array) -> Batch:
    """The pages together, with the features that each of them shows."""
    words = np.concatenate([page.words for page in pages])
    weights = [page.words**0.7 for page in pages]
    starts = np.cumsum([0, *(len(page.words) for page in pages)])
    own = np.empty((len(words), shown_own.shape[1]), np.float32)
    for page, shown, start in zip(pages, shown_own, starts.tolist(), strict=False):
        np.multiply(page.own, shown, out=own[start : start + len(page.words)])
    return Batch(
        own=own,
        about=np.stack([page.about for page in pages]) * shown_about,
        page=np.repeat(np.arange(len(pages)), np.diff(starts)),
        starts=starts,
        labels=np.concatenate([page.labels for page in pages]),
        words=words,
        entropy=np.concatenate([weight / weight.sum() for weight in weights]),
        context=_context(pages, np.sqrt(words), starts),
    )


def _context(pages: Sequence[Prepared], weights: Array, starts: Starts) -> Context:
    blocks = np.arange(starts[-1])
    page = np.repeat(np.arange(len(pages)), np.diff(starts))
    return [
        _grouped(weights, Group(blocks, starts[:-1], page)),
        *(
            _grouped(weights, _joined(groups, starts))
            for groups in zip(*(page.groups for page in pages), strict=True)
        ),
        _neighbouring(page),
        _one_sided(weights, starts, _running, _remaining),
        _one_sided(weights, starts, _remaining, _running),
    ]


def _joined(groups: Sequence[Group], starts: Starts) -> Group:
    """The groups of several pages as those of one."""
    before = np.cumsum([0, *(len(group.starts) for group in groups)])
    return Group(
        np.concatenate([g.order + start for g, start in zip(groups, starts, strict=False)]),
        np.concatenate([g.starts + start for g, start in zip(groups, starts, strict=False)]),
        np.concatenate([g.of_block + count for g, count in zip(groups, before, strict=False)]),
    )


def _grouped(weights: Array, group: Group) -> tuple[Step, Step]:
    """The weighted mean over the group of each block."""
    totals = np.add.reduceat(weights[group.order], group.starts)[:, None]

    def forward(values: Array) -> Array:
        sums = np.add.reduceat((values * weights[:, None])[group.order], group.starts)
        return (sums / totals)[group.of_block]

    def backward(values: Array) -> Array:
        sums = np.add.reduceat(values[group.order], group.starts)
        return (sums / totals)[group.of_block] * weights[:, None]

    return forward, backward


def _neighbouring(page: Starts) -> tuple[Step, Step]:
    """The mean over a block and those up to two places from it on its page."""
    near = [(page[step:] == page[:-step])[:, None] for step in range(1, _WINDOW + 1)]

    def summed(values: Array) -> Array:
        total = values.copy()
        for step, together in enumerate(near, start=1):
            total[:-step] += values[step:] * together
            total[step:] += values[:-step] * together
        return total

    count = summed(np.ones((len(page), 1), np.float32))

    def forward(values: Array) -> Array:
        return summed(values) / count

    def backward(values: Array) -> Array:
        return summed(values / count)

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
    sums = np.empty_like(values)
    for start, end in pairwise(starts.tolist()):
        np.cumsum(values[start:end], axis=0, out=sums[start:end])
    return sums


def _remaining(values: Array, starts: Starts) -> Array:
    """Sums up to the end of each page."""
    sums = np.empty_like(values)
    for start, end in pairwise(starts.tolist()):
        np.cumsum(values[start:end][::-1], axis=0, out=sums[start:end][::-1])
    return sums


class Trainer:
    """A network in training: its parameters and their running moments."""

    def __init__(self, features: int, seed: int, loss: Loss) -> None:
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
                self._descend(self._gradients(self._shown(taken)), steps)
        return Network(*self.weights)

    def _believable(self, pages: Sequence[Prepared]) -> npt.NDArray[np.int64]:
        """The pages whose truth can be learned at all.

        Some truths stop halfway or name another part of the page than those of pages like it.
        What contradicts the rest is learned last: whoever has not been by now is left out.
        """
        scores = np.array([self._expected_f1(page) for page in pages])
        return np.flatnonzero(scores >= _BELIEVED)

    def _expected_f1(self, page: Prepared) -> float:
        batch = _batch([page], np.ones((1, len(page.own.T)), np.float32), np.float32(1))
        _, _, shared_w, together_w, together_b, out_w, out_b = self.weights
        alone = np.maximum(self._alone(batch), 0)
        shared = alone @ shared_w
        seen = np.concatenate([alone, *(tell(shared) for tell, _ in batch.context)], axis=1)
        together = np.maximum(seen @ together_w + together_b, 0)
        chance = 1 / (1 + np.exp(-np.clip((together @ out_w)[:, 0] + out_b[0], -30, 30)))
        hits = float((chance * page.labels * page.words).sum())
        return 2 * hits / float(((chance + page.labels) * page.words).sum())

    def _shown(self, pages: Sequence[Prepared]) -> Batch:
        """The pages with some features hidden: those take their mean, which is zero.

        What is said of whole pages is hidden more often: a thousand pages are easily told apart
        by it, and then learned by heart.
        """
        own = self._random.random((len(pages), pages[0].own.shape[1]), np.float32)
        about = self._random.random((len(pages), len(pages[0].about)), np.float32)
        return _batch(
            pages,
            (own >= _HIDE_OWN).astype(np.float32),
            (about >= _HIDE_PAGE).astype(np.float32),
        )

    def _alone(self, batch: Batch) -> Array:
        """What the first layer makes of each block, before it is bent."""
        weights, bias = self.weights[:2]
        width = batch.own.shape[1]
        alone: Array = batch.own @ weights[:width]
        alone += (batch.about @ weights[width:] + bias)[batch.page]
        return alone

    def _gate(self, values: Array) -> Array:
        """What values are multiplied by: nothing for those below zero and those dropped."""
        draws = np.frombuffer(self._random.bytes(values.size), np.uint8).reshape(values.shape)
        gate: Array = _DROPPED.take(draws)
        gate *= values > 0
        return gate

    def _gradients(self, batch: Batch) -> list[Array]:
        _, _, shared_w, together_w, together_b, out_w, out_b = self.weights
        alone = self._alone(batch)
        alone_gate = self._gate(alone)
        alone *= alone_gate
        shared = alone @ shared_w
        seen = np.concatenate([alone, *(tell(shared) for tell, _ in batch.context)], axis=1)
        together = seen @ together_w
        together += together_b
        together_gate = self._gate(together)
        together *= together_gate
        slope = _slope((together @ out_w)[:, 0] + out_b[0], batch, self._loss)[:, None]

        to_together = (slope @ out_w.T) * together_gate
        to_seen = to_together @ together_w.T
        to_shared = np.zeros_like(shared)
        for number, (_, untell) in enumerate(batch.context):
            part = slice(_ALONE + number * _SHARED, _ALONE + (number + 1) * _SHARED)
            to_shared += untell(to_seen[:, part])
        to_alone = to_shared @ shared_w.T
        to_alone += to_seen[:, :_ALONE]
        to_alone *= alone_gate
        of_page = np.add.reduceat(to_alone, batch.starts[:-1])
        return [
            np.concatenate((batch.own.T @ to_alone, batch.about.T @ of_page)), of_page.sum(axis=0),
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
