"""`make train-extractor`: learns the model that is shipped, and one for each fold of WCXB.

The shipped model learns from all pages. A fold's model learns from the pages of the other folds'
sites; `make bench-extract` uses it for the pages of its own fold, so that no page is scored by a
model that has seen its site. With `--split NAME` the sites are dealt out in another way and no
model is kept: settings are picked on such splits, so that the reported figures do not flatter them.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import trapline.extract
from benchmarks.extractor.lexicons import Lexicons
from benchmarks.extractor.network import Loss, Prepared, Trainer
from benchmarks.extractor.pagetypes import train_types
from benchmarks.extractor.samples import Sample, read_sample
from benchmarks.extractor.wcxb import FOLDS, REPORTED, fold_of_domain, load_pages
from trapline.extract.html.outline import Floats
from trapline.extract.main_content.scorer import (
    MODEL,
    Ensemble,
    Network,
    Scorer,
    dump_scorer,
    likeliest_type,
)
from trapline.extract.main_content.selection import choose

MODELS = Path(__file__).parent / "folds"
SHIPPED = Path(trapline.extract.__file__).parent / MODEL
_BOUND = 4.0


def read_samples(split: str = REPORTED, parts: int = FOLDS) -> list[Sample]:
    pages = load_pages()
    folds = fold_of_domain(pages, split, parts)
    return [read_sample(page, folds[page.domain]) for page in pages]


class Learner:
    """Pages to learn from, and all that does not depend on which of them are taken."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples
        self._lexicons = Lexicons(samples)

    def fit(self, left_out: int | None, networks: int, epochs: int) -> Scorer:
        """Learn from the pages of all folds but one that have text and some of the truth in it."""
        taken = [
            number
            for number, sample in enumerate(self._samples)
            if sample.fold != left_out and len(sample.blocks) and sample.labels.max() > 0
        ]
        scores, inner = self._lexicons.learn(taken)
        matrices = [self._lexicons.inner_features(number, inner) for number in taken]
        mean, scale = _spread(matrices)
        for matrix in matrices:
            np.clip((matrix - mean) * scale, -_BOUND, _BOUND, out=matrix)
        samples = [self._samples[number] for number in taken]
        prepared = [Prepared.of(s, matrix) for s, matrix in zip(samples, matrices, strict=True)]
        learned = tuple(_network(prepared, seed, epochs) for seed in range(networks))
        pages: Floats = np.stack([page.about for page in prepared])
        return Scorer(
            vocabulary=self._lexicons.vocabulary(scores),
            mean=mean,
            scale=scale,
            networks=Ensemble(learned),
            type_weights=train_types(samples, pages),
        )


def _spread(matrices: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The mean of each feature over all blocks, and one divided by how far they differ."""
    rows = sum(map(len, matrices))
    mean = sum(matrix.sum(axis=0, dtype=np.float64) for matrix in matrices) / rows
    square = sum(((matrix - mean) ** 2).sum(axis=0) for matrix in matrices) / rows
    return mean.astype(np.float32), (1 / (np.sqrt(square) + 1e-3)).astype(np.float32)


def _network(prepared: Sequence[Prepared], seed: int, epochs: int) -> Network:
    # Networks that err differently are worth more together.
    loss = Loss(f1=1.0) if seed % 2 == 0 else Loss(f1=0.2)
    features = prepared[0].own.shape[1] + len(prepared[0].about)
    trainer = Trainer(features, seed, loss)
    return trainer.train(prepared, epochs)


def score(scorer: Scorer, samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Word-F1 of each page, by type."""
    found = defaultdict(list)
    for sample in samples:
        features = sample.reading.features(scorer.vocabulary)
        chosen = np.zeros(0, dtype=np.bool_)
        if len(sample.blocks):
            judged = scorer.judge(features)
            chosen = choose(judged.scores, sample.blocks, judged.recall).flags
        found[sample.page.page_type].append(sample.f1(chosen))
        right = likeliest_type(scorer.odds(features)).value == sample.page.page_type
        found["type found"].append(float(right))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--of", type=int, default=FOLDS, help="how many folds; others are not kept")
    parser.add_argument("--folds", type=int, nargs="*", help="train these alone")
    parser.add_argument("--not-shipped", action="store_true", help="train the folds' models alone")
    parser.add_argument("--split", default=REPORTED, help="another split; no model is kept")
    arguments = parser.parse_args()
    start = time.monotonic()
    samples = read_samples(arguments.split, arguments.of)
    kept = arguments.split == REPORTED and arguments.of == FOLDS
    print(f"{len(samples)} pages read in {time.monotonic() - start:.0f} s", flush=True)
    learner = Learner(samples)
    if kept and not arguments.not_shipped:
        data = dump_scorer(learner.fit(None, arguments.networks, arguments.epochs))
        SHIPPED.write_bytes(data)
        print(f"shipped model: {len(data):,} bytes, {time.monotonic() - start:.0f} s", flush=True)
    MODELS.mkdir(exist_ok=True)
    totals: dict[str, list[float]] = defaultdict(list)
    for fold in arguments.folds or range(arguments.of):
        scorer = learner.fit(fold, arguments.networks, arguments.epochs)
        if kept:
            (MODELS / f"fold{fold}.npz").write_bytes(dump_scorer(scorer))
        found = score(scorer, [s for s in samples if s.fold == fold])
        for name, values in found.items():
            totals[name] += values
        print(f"fold {fold}: {_line(found)} {time.monotonic() - start:.0f} s", flush=True)
    print(f"all: {_line(totals)}", flush=True)


def _line(found: dict[str, list[float]]) -> str:
    pages = [value for name, values in found.items() if name != "type found" for value in values]
    means = ", ".join(f"{name} {np.mean(values):.3f}" for name, values in sorted(found.items()))
    return f"F1 {np.mean(pages):.4f} ({means})"


if __name__ == "__main__":
    main()
