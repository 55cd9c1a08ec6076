"""Scores of words in training: pages must look to the network as they will when it reads them."""

import gzip
import json

import numpy as np
import pytest

from benchmarks.extractor.lexicons import INNER, Lexicons, inner_part
from benchmarks.extractor.samples import Sample, read_sample
from benchmarks.extractor.wcxb import fold_of_domain, load_pages
from tests.support.paths import PAGES


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    """Pages of our own, each of a site of its own, laid out as the benchmark's are."""
    root = tmp_path_factory.mktemp("pages")
    (root / "html").mkdir()
    (root / "ground-truth").mkdir()
    for path in sorted(PAGES.glob("*.html")):
        truth = path.with_suffix(".txt").read_text()
        record = {
            "url": f"https://{path.stem}.example/page",
            "_internal": {"page_type": {"primary": path.stem}},
            "ground_truth": {"main_content": truth},
        }
        (root / "html" / f"{path.stem}.html.gz").write_bytes(gzip.compress(path.read_bytes()))
        (root / "ground-truth" / f"{path.stem}.json").write_text(json.dumps(record))
    pages = load_pages(root)
    folds = fold_of_domain(pages)
    return [read_sample(page, folds[page.domain]) for page in pages]


def test_training_sees_the_features_that_reading_gives(
    samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.extractor.lexicons._MIN_DOMAINS", 1)
    lexicons = Lexicons(samples)
    scores, _ = lexicons.learn(range(len(samples)))
    vocabulary = lexicons.vocabulary(scores)
    assert all(vocabulary.scores[:3])
    for number, sample in enumerate(samples):
        width = len(sample.reading.page)
        learned = lexicons.features(number, scores)
        read = sample.reading.matrix(vocabulary)
        np.testing.assert_allclose(learned[:, :-width], read, rtol=1e-5, atol=1e-6)
        assert (learned[:, -width:] == sample.reading.page).all()


def test_inner_scores_do_not_know_the_labels_of_their_own_pages(samples: list[Sample]) -> None:
    everyone = range(len(samples))
    lexicons = Lexicons(samples)
    _, before = lexicons.learn(everyone)
    for sample in samples[:1]:
        sample.labels[:] = 1 - sample.labels
    part = inner_part(samples[0])
    _, after = Lexicons(samples).learn(everyone)
    for left in range(INNER):
        same = all(
            np.array_equal(old, new) for old, new in zip(before[left], after[left], strict=True)
        )
        assert same == (left == part)


def test_words_of_few_sites_are_not_known(samples: list[Sample]) -> None:
    lexicons = Lexicons(samples)
    few, _ = lexicons.learn(range(3))
    assert not any(kind.any() for kind in few)
