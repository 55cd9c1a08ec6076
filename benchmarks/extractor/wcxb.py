"""The development pages of WCXB, the Web Content eXtraction Benchmark, and their folds."""

import gzip
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

FOLDS = 10
# Settings are picked on other splits than the one that figures are reported for.
REPORTED = "reported"
_BESIDE_REPOSITORY = Path(__file__).parents[2].parent / "shared" / "data" / "wcxb-dev"


def wcxb_root() -> Path:
    return Path(os.environ.get("TRAPLINE_WCXB", _BESIDE_REPOSITORY))


@dataclass(frozen=True)
class WcxbPage:
    name: str
    url: str
    page_type: str
    truth: str
    truth_markdown: str
    title: str
    author: str
    published: str
    must_have: tuple[str, ...]
    must_not_have: tuple[str, ...]
    root: Path

    @property
    def body(self) -> bytes:
        return gzip.decompress((self.root / "html" / f"{self.name}.html.gz").read_bytes())

    @property
    def domain(self) -> str:
        """The last two labels of the host: pages of a site stay on one side of a split."""
        host = urlsplit(self.url).hostname or self.name
        return ".".join(host.split(".")[-2:])


def load_pages(root: Path | None = None) -> list[WcxbPage]:
    root = root or wcxb_root()
    return [_read(path, root) for path in sorted((root / "ground-truth").glob("*.json"))]


def _read(path: Path, root: Path) -> WcxbPage:
    record = json.loads(path.read_text())
    truth = record["ground_truth"]
    return WcxbPage(
        name=path.stem,
        url=record.get("url") or "",
        page_type=record["_internal"]["page_type"]["primary"],
        truth=truth.get("main_content") or "",
        truth_markdown=truth.get("main_content_markdown") or "",
        title=truth.get("title") or "",
        author=truth.get("author") or "",
        published=truth.get("publish_date") or "",
        must_have=tuple(truth.get("with") or ()),
        must_not_have=tuple(truth.get("without") or ()),
        root=root,
    )


def fold_of_domain(
    pages: Iterable[WcxbPage], split: str = REPORTED, folds: int = FOLDS
) -> dict[str, int]:
    """Domains dealt out to the folds, type by type, so that each fold has its share of each type."""
    kinds: dict[str, Counter[str]] = {}
    for page in pages:
        kinds.setdefault(page.domain, Counter())[page.page_type] += 1
    dealt = sorted(
        kinds, key=lambda domain: (kinds[domain].most_common(1)[0][0], _shuffle(split + domain))
    )
    return {domain: place % folds for place, domain in enumerate(dealt)}


def _shuffle(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
