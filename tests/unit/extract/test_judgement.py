"""How sure the scorer is of what it says, by what type of page it takes a page for."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import turbohtml

from trapline.extract.outline import Floats
from trapline.extract.reader import read_outline
from trapline.extract.scorer import TYPES, Judgement, Scorer, shipped_scorer
from trapline.model import PageType

PAGE = Path(__file__).parent / "pages" / "collection.html"


def taking_pages_for(kind: PageType) -> Scorer:
    """The shipped model, with an unshakeable opinion on the type of all pages."""
    hidden, hidden_bias, out, _ = shipped_scorer().type_weights
    opinion = np.where([known is kind for known in TYPES], 40, 0).astype(np.float32)
    weights = (hidden, hidden_bias, np.zeros_like(out), opinion)
    return replace(shipped_scorer(), type_weights=weights)


def judged_as(kind: PageType) -> Judgement:
    tree = turbohtml.parse(PAGE.read_text())
    scorer = taking_pages_for(kind)
    return scorer.judge(scorer.features(tree, read_outline(tree), "https://example.com/x"))


def logits(scores: Floats) -> Floats:
    return np.asarray(np.log(scores / (1 - scores)))


@pytest.mark.parametrize("kind", [PageType.COLLECTION, PageType.LISTING])
def test_less_is_certain_of_grids_and_lists_and_less_is_asked(kind: PageType) -> None:
    article, grid = judged_as(PageType.ARTICLE), judged_as(kind)
    # Beyond that a score is rounded to 1.
    told = np.abs(logits(article.scores)) < 10
    assert told.any()
    assert np.allclose(logits(grid.scores)[told] / logits(article.scores)[told], 5 / 7, rtol=1e-2)
    assert (article.floor, grid.floor) == (pytest.approx(0.25), pytest.approx(0.2))


@pytest.mark.parametrize("kind", [PageType.PRODUCT, PageType.FORUM, PageType.SERVICE])
def test_other_types_are_judged_alike(kind: PageType) -> None:
    assert np.allclose(judged_as(kind).scores, judged_as(PageType.ARTICLE).scores)
    assert judged_as(kind).floor == pytest.approx(judged_as(PageType.ARTICLE).floor)
