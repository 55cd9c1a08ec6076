"""How sure the scorer is of what it says, by what type of page it takes a page for."""

from dataclasses import replace

import numpy as np
import pytest
import turbohtml
from msgspec import structs

from tests.support.paths import PAGES
from trapline.extract.html.outline import Floats, read_outline
from trapline.extract.main_content.model_input import Features
from trapline.extract.main_content.scorer import TYPES, PageScores, Scorer, shipped_scorer
from trapline.extract.metadata.page_type_hints import read_hints
from trapline.model import PageType

PAGE = PAGES / "collection.html"
GRIDS = [PageType.COLLECTION, PageType.LISTING]
OTHERS = [kind for kind in TYPES if kind not in GRIDS]


def taking_pages_for(kind: PageType) -> Scorer:
    """The shipped model, with an unshakeable opinion on the type of all pages."""
    hidden, hidden_bias, out, _ = shipped_scorer().type_weights
    opinion = np.where([known is kind for known in TYPES], 40, 0).astype(np.float32)
    weights = (hidden, hidden_bias, np.zeros_like(out), opinion)
    return replace(shipped_scorer(), type_weights=weights)


def features(said: float = 1.0) -> Features:
    """A page's features; of what tells it from the average page, this share is said."""
    tree = turbohtml.parse(PAGE.read_text())
    found = shipped_scorer().features(read_outline(tree), read_hints(tree, "https://example.com/x"))
    average = shipped_scorer().mean[-len(found.page) :]
    return structs.replace(found, page=average + np.float32(said) * (found.page - average))


def judged_as(kind: PageType, said: float = 1.0) -> PageScores:
    return taking_pages_for(kind).judge(features(said))


def logits(judged: PageScores) -> Floats:
    return np.asarray(np.log(judged.scores / (1 - judged.scores)))


def same_opinions(one: PageScores, other: PageScores, softer: float = 1.0) -> bool:
    # Beyond that a score is rounded to 1.
    told = (np.abs(logits(one)) < 10) & (np.abs(logits(other)) < 10)
    assert told.any()
    return np.allclose(logits(one)[told], logits(other)[told] * softer, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("kind", GRIDS)
def test_less_is_certain_of_grids_and_less_made_of_the_page_as_a_whole(kind: PageType) -> None:
    judged = judged_as(kind)
    assert same_opinions(judged, judged_as(PageType.ARTICLE, said=0.3), softer=5 / 7)
    assert not same_opinions(judged, judged_as(PageType.ARTICLE), softer=5 / 7)
    assert judged.recall == pytest.approx(1.0)


@pytest.mark.parametrize("kind", OTHERS)
def test_other_types_are_judged_alike_and_too_much_of_them_is_shunned(kind: PageType) -> None:
    judged = judged_as(kind)
    assert same_opinions(judged, judged_as(PageType.ARTICLE))
    assert judged.recall == pytest.approx(0.8)
