"""The page-type head: a small softmax classifier over the numbers about the whole page."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.extractor.samples import Sample
from trapline.extract.html.outline import Floats
from trapline.extract.main_content.scorer import TYPES

_HIDDEN = 32
_STEPS = 500
_RATE = 5e-3
_DECAY = 2e-2
_DROP = 0.3
_NAMES = [kind.value for kind in TYPES]


def train_types(
    samples: Sequence[Sample], pages: Floats, seed: int = 0
) -> tuple[npt.NDArray[np.float32], ...]:
    """`pages` has one normalised row a sample."""
    random = np.random.default_rng(seed)
    wanted = np.array([_NAMES.index(sample.page.page_type) for sample in samples])
    # Types count alike by the root of their frequency: articles are half of all pages.
    weight = 1 / np.sqrt(np.bincount(wanted, minlength=len(TYPES)))[wanted]
    weight /= weight.sum()
    weights = [
        random.standard_normal((pages.shape[1], _HIDDEN)) * np.sqrt(2 / pages.shape[1]),
        np.zeros(_HIDDEN),
        random.standard_normal((_HIDDEN, len(TYPES))) * np.sqrt(1 / _HIDDEN),
        np.zeros(len(TYPES)),
    ]
    first = [np.zeros_like(part) for part in weights]
    second = [np.zeros_like(part) for part in weights]
    for step in range(1, _STEPS + 1):
        gradients = _gradients(weights, pages, wanted, weight, random)
        rate = _RATE * 0.5 * (1 + np.cos(np.pi * step / _STEPS))
        for part, slope, mean, spread in zip(weights, gradients, first, second, strict=True):
            np.add(mean, 0.1 * (slope - mean), out=mean)
            np.add(spread, 0.01 * (slope**2 - spread), out=spread)
            scaled = mean / (1 - 0.9**step) / (np.sqrt(spread / (1 - 0.99**step)) + 1e-8)
            decay = _DECAY * part if part.ndim > 1 else 0
            np.subtract(part, rate * (scaled + decay), out=part)
    return tuple(part.astype(np.float32) for part in weights)


def _gradients(
    weights: list[npt.NDArray[np.float64]],
    pages: Floats,
    wanted: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64],
    random: np.random.Generator,
) -> list[npt.NDArray[np.float64]]:
    hidden_w, hidden_b, out_w, out_b = weights
    kept = (random.random((len(pages), _HIDDEN)) > _DROP) / (1 - _DROP)
    inner = pages @ hidden_w + hidden_b
    hidden = np.maximum(inner, 0) * kept
    odds = hidden @ out_w + out_b
    chance = np.exp(odds - odds.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    chance[np.arange(len(pages)), wanted] -= 1
    slope = chance * weight[:, None]
    below = (slope @ out_w.T) * kept * (inner > 0)
    return [pages.T @ below, below.sum(axis=0), hidden.T @ slope, slope.sum(axis=0)]
