"""`make bench-extract`: main content on WCXB, beside the extractors that people use.

Every page is scored by the model of its fold, which has not seen its site. Times are CPU seconds of
one core in this run, over the same pages in memory. Trapline is timed at the whole extraction:
decode, parse, main content, markdown, metadata, links; with a vocabulary that remembers nothing of
the pages. trafilatura is timed twice: as one calls it for the same work (`speed_vs_trafilatura`),
and for plain text alone (`speed_vs_trafilatura_text_alone`).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import importlib.metadata
import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import readability
import trafilatura
import turbohtml
from resiliparse.extract.html2text import extract_plain_text

from benchmarks.extractor.scoring import word_f1, words_of
from benchmarks.extractor.structure import kept_structure
from benchmarks.extractor.train import MODELS
from benchmarks.extractor.wcxb import FOLDS, WcxbPage, fold_of_domain, load_pages
from trapline.extract.html.charset import decode
from trapline.extract.main_content.scorer import Scorer, load_scorer
from trapline.extract.page import extract_html
from trapline.model import Document

_TIMED_EVERY = 5
_CHUNK = 30

Extractor = Callable[[WcxbPage, bytes], str]


@dataclass
class Result:
    f1: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    found: list[bool] = field(default_factory=list)
    leaked: list[bool] = field(default_factory=list)
    rate: float = 0.0
    """Pages per CPU second."""

    def add(self, page: WcxbPage, text: str) -> None:
        self.f1[page.page_type].append(word_f1(words_of(text), words_of(page.truth)))
        flat = " ".join(words_of(text))
        self.found += [" ".join(words_of(part)) in flat for part in page.must_have]
        self.leaked += [" ".join(words_of(part)) in flat for part in page.must_not_have]

    @property
    def mean(self) -> float:
        return float(np.mean([value for values in self.f1.values() for value in values]))


def measure(pages: Sequence[WcxbPage], extractor: Extractor) -> Result:
    result = Result()
    for page in pages:
        result.add(page, extractor(page, page.body))
    return result


def race(pages: Sequence[WcxbPage], extractors: dict[str, Extractor]) -> dict[str, float]:
    """Pages per CPU second. Taking turns, a chunk of pages each, all have the same weather."""
    timed = [(page, page.body) for page in pages[::_TIMED_EVERY]]
    warm = [(page, page.body) for page in pages[1:3]]
    seconds = dict.fromkeys(extractors, 0.0)
    for start in range(0, len(timed), _CHUNK):
        chunk = timed[start : start + _CHUNK]
        for name, extractor in extractors.items():
            for page, body in warm:
                extractor(page, body)
            began = time.process_time()
            for page, body in chunk:
                extractor(page, body)
            seconds[name] += time.process_time() - began
    return {name: len(timed) / spent for name, spent in seconds.items()}


class Ours:
    """Trapline with the models of the folds; keeps what it read for the other figures."""

    def __init__(self) -> None:
        self._fold = fold_of_domain(load_pages())
        self._scorers: list[Scorer] = [
            load_scorer((MODELS / f"fold{fold}.npz").read_bytes()) for fold in range(FOLDS)
        ]
        self.documents: dict[str, Document] = {}

    def __call__(self, page: WcxbPage, body: bytes) -> str:
        scorer = self._scorers[self._fold[page.domain]]
        document = extract_html(decode(body, "text/html"), "text/html", page.url, scorer=scorer)
        self.documents[page.name] = document
        return document.text


def _trafilatura(page: WcxbPage, body: bytes) -> str:
    del page
    return trafilatura.extract(body) or ""


def _trafilatura_whole(page: WcxbPage, body: bytes) -> str:
    return (
        trafilatura.extract(
            body,
            url=page.url or None,
            output_format="markdown",
            with_metadata=True,
            include_links=True,
        )
        or ""
    )


def _resiliparse(page: WcxbPage, body: bytes) -> str:
    del page
    return extract_plain_text(body.decode("utf-8", "replace"), main_content=True)


def _readability(page: WcxbPage, body: bytes) -> str:
    del page
    try:
        summary = readability.Document(body.decode("utf-8", "replace")).summary()
    except (readability.readability.Unparseable, ValueError):
        return ""
    return turbohtml.parse(summary).to_text()


def _turbohtml(page: WcxbPage, body: bytes) -> str:
    del page
    return turbohtml.parse(body, positions=False).main_text()


def describe(pages: Sequence[WcxbPage], documents: dict[str, Document]) -> dict[str, float]:
    """Agreement of title, author and date, where the truth has one; structure of the markdown."""
    agreed: dict[str, list[float]] = defaultdict(list)
    for page in pages:
        document = documents[page.name]
        metadata = document.metadata
        for name, truth, found in (
            # The truth's title is the headline; what <title> says has the site's name as well.
            ("title", page.title, metadata.headline),
            ("title_as_declared", page.title, metadata.title),
            ("author", _names(page.author), _names(metadata.author or "")),
            ("date", page.published[:10], (metadata.published or "")[:10]),
        ):
            if truth:
                agreed[name].append(float(words_of(truth) == words_of(found or "")))
        if page.title:
            within = " ".join(words_of(page.title)) in " ".join(words_of(metadata.title or ""))
            agreed["title_within"].append(float(within))
        agreed["page_type"].append(float(document.page_type.value == page.page_type))
        for name, value in kept_structure(document.markdown, page.truth_markdown).items():
            agreed[f"markdown_{name}"].append(value)
    return {name: round(float(np.mean(values)), 3) for name, values in agreed.items()}


def _names(authors: str) -> str:
    """Names in a row: `and` before the last is as good as a comma."""
    return " ".join(word for word in words_of(authors) if word != "and")


PEERS: dict[str, tuple[str, Extractor]] = {
    "trafilatura, text alone": ("trafilatura", _trafilatura),
    "trafilatura, all of it": ("trafilatura", _trafilatura_whole),
    "resiliparse": ("resiliparse", _resiliparse),
    "readability": ("readability-lxml", _readability),
    "turbohtml": ("turbohtml", _turbohtml),
}


def report(results: dict[str, Result], pages: int) -> None:
    types = sorted({name for result in results.values() for name in result.f1})
    print(f"{pages} pages; word-F1, snippets, pages per CPU second")
    short = "".join(f"{name[:7]:>9}" for name in types)
    print(f"{'':24}{'all':>7}{short}{'with':>7}{'without':>9}{'pages/s':>9}")
    for name, result in results.items():
        by_type = "".join(f"{np.mean(result.f1[kind]):>9.3f}" for kind in types)
        snippets = f"{np.mean(result.found):>7.3f}{np.mean(result.leaked):>9.3f}"
        print(f"{name:24}{result.mean:>7.4f}{by_type}{snippets}{result.rate:>9.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take one page in so many")
    parser.add_argument("--speed", action="store_true", help="time alone, no quality")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    pages = load_pages()[:: arguments.every]
    peers: dict[str, Extractor] = {name: peer for name, (_, peer) in PEERS.items()}
    rates = race(pages, {"trapline": Ours(), **peers})
    if arguments.speed:
        print(
            json.dumps({**{name: round(rate, 1) for name, rate in rates.items()}, **ratios(rates)})
        )
        return
    ours = Ours()
    extractors: dict[str, Extractor] = {"trapline": ours, **peers}
    results = {name: measure(pages, extractor) for name, extractor in extractors.items()}
    for name, rate in rates.items():
        results[name].rate = rate
    report(results, len(pages))
    agreement = describe(pages, ours.documents)
    print(json.dumps(agreement))
    names = sorted({package for package, _ in PEERS.values()})
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))
    mine = results["trapline"]
    figures = {
        "f1": round(mine.mean, 4),
        "f1_by_type": {kind: round(float(np.mean(v)), 4) for kind, v in sorted(mine.f1.items())},
        "with_recall": round(float(np.mean(mine.found)), 4),
        "without_leak": round(float(np.mean(mine.leaked)), 4),
        "pages_per_second": round(mine.rate, 1),
        **ratios(rates),
        "peers_f1": {name: round(result.mean, 4) for name, result in results.items()},
        **agreement,
    }
    print(json.dumps(figures))


def ratios(rates: dict[str, float]) -> dict[str, float]:
    """Trapline's whole extraction beside trafilatura's, and beside its plain text."""
    return {
        "speed_vs_trafilatura": round(rates["trapline"] / rates["trafilatura, all of it"], 2),
        "speed_vs_trafilatura_text_alone": round(
            rates["trapline"] / rates["trafilatura, text alone"], 2
        ),
    }


if __name__ == "__main__":
    main()
