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
from benchmarks.extractor.lexicons import (
    INNER,
    features,
    inner_part,
    known_words,
    learn_scores,
    page_counts,
    vocabulary,
)
from benchmarks.extractor.network import Loss, Prepared, Trainer
from benchmarks.extractor.pagetypes import train_types
from benchmarks.extractor.samples import Sample, read_sample
from benchmarks.extractor.wcxb import FOLDS, REPORTED, fold_of_domain, load_pages
from trapline.extract.outline import Floats
from trapline.extract.scorer import MODEL, Ensemble, Network, Scorer, dump_scorer
from trapline.extract.selection import choose

MODELS = Path(__file__).parent / "folds"
SHIPPED = Path(trapline.extract.__file__).parent / MODEL
_BOUND = 4.0


def read_samples(split: str = REPORTED, parts: int = FOLDS) -> list[Sample]:
    pages = load_pages()
    folds = fold_of_domain(pages, split, parts)
    return [read_sample(page, folds[page.domain]) for page in pages]


def fit(samples: Sequence[Sample], networks: int, epochs: int) -> Scorer:
    """Learn from the samples that have text and some of the truth in it."""
    samples = [s for s in samples if len(s.blocks) and s.labels.max() > 0]
    counts = [page_counts(sample) for sample in samples]
    known = known_words(samples)
    parts = [inner_part(sample) for sample in samples]
    inner = [
        learn_scores([c for c, part in zip(counts, parts, strict=True) if part != left], known)
        for left in range(INNER)
    ]
    matrices = [features(s, inner[part]) for s, part in zip(samples, parts, strict=True)]
    rows = np.concatenate(matrices)
    mean = rows.mean(axis=0)
    scale = 1 / (rows.std(axis=0) + np.float32(1e-3))
    del rows
    normal = [np.clip((matrix - mean) * scale, -_BOUND, _BOUND) for matrix in matrices]
    prepared = [Prepared.of(s, matrix) for s, matrix in zip(samples, normal, strict=True)]
    width = len(samples[0].reading.page)
    learned = tuple(_network(prepared, width, seed, epochs) for seed in range(networks))
    pages: Floats = np.array([matrix[0, -width:] for matrix in normal])
    return Scorer(
        vocabulary=vocabulary(learn_scores(counts, known)),
        mean=mean,
        scale=scale,
        networks=Ensemble(learned),
        type_weights=train_types(samples, pages),
    )


def _network(prepared: Sequence[Prepared], page_features: int, seed: int, epochs: int) -> Network:
    # Networks that err differently are worth more together.
    loss = Loss(f1=1.0) if seed % 2 == 0 else Loss(f1=0.2)
    trainer = Trainer(prepared[0].matrix.shape[1], page_features, seed, loss)
    return trainer.train(prepared, epochs)


def score(scorer: Scorer, samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Word-F1 of each page, by type."""
    found = defaultdict(list)
    for sample in samples:
        features = sample.reading.features(scorer.vocabulary)
        chosen = np.zeros(0, dtype=np.bool_)
        if len(sample.blocks):
            chosen = choose(scorer.scores(features), sample.blocks)
        found[sample.page.page_type].append(sample.f1(chosen))
        right = scorer.page_type(features).value == sample.page.page_type
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
    if kept and not arguments.not_shipped:
        data = dump_scorer(fit(samples, arguments.networks, arguments.epochs))
        SHIPPED.write_bytes(data)
        print(f"shipped model: {len(data):,} bytes, {time.monotonic() - start:.0f} s", flush=True)
    MODELS.mkdir(exist_ok=True)
    totals: dict[str, list[float]] = defaultdict(list)
    for fold in arguments.folds or range(arguments.of):
        scorer = fit([s for s in samples if s.fold != fold], arguments.networks, arguments.epochs)
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
