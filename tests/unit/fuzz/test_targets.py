"""Mutated seeds of every fuzz target: the run's seed is in the failure's name, `TRAPLINE_SEED` sets it."""

import gzip
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.fuzz_targets import TARGETS, run
from tests.support.paths import PAGES, ROOT
from tests.support.pure_python import needs_native, pure_python
from trapline.extract import extract
from trapline.model import ExtractOptions, Format

SEED: Final = int(os.environ.get("TRAPLINE_SEED") or random.randrange(1_000_000))
DATA: Final = Path(os.environ.get("TRAPLINE_TEST_DATA", ROOT.parent / "shared" / "data"))
ROUNDS: Final = 60
_PAGE_BYTES: Final = 20_000
_PARTS: Final = (
    b"<",
    b">",
    b'"',
    b"\x00",
    b"\xff\xfe",
    b"&#",
    b"<![CDATA[",
    b"\r\n\r\n",
    b"%",
    b"-" * 99,
)
SEEDS: Final[dict[str, tuple[bytes, ...]]] = {
    "url": (b"http://a.test:80/../b?x=1&utm_a=2#f", b"//[::1]/%zz", "http://\u00e9.test/".encode()),
    "robots": (b"User-agent: *\nDisallow: /a*b$\nCrawl-delay: 1e9\nSitemap: x\n",),
    "sitemap": (b"<urlset><url><loc>http://a.test/&amp;</loc><lastmod>2024</lastmod></url></urlset>",),
    "response_head": (b"HTTP/1.1 200 OK\r\nContent-Length : 1\r\ncontent-length: 1\r\n\r\nx",),
    "cookies": (b'a=b; Path=/; Max-Age=99999999999\nc="d"; Expires=Wed, 21 Oct 2015 07:28:00 GMT',),
    "charset": (b"text/html; charset=shift_jis\n<meta charset=utf-16>\x83\x65", b"\n\xef\xbb\xbfx"),
    "multipart_form": (b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n',),
    "warc": (b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 19\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\r\n\r\n",),
    "query": (b'+a -"b c" OR (d AND NOT e)', "\u00e9 \u4e00 AND".encode()),
    "cursor": (b"WzEsImEiXQ", b"eyJhIjogMX0="),
}  # fmt: skip


def seeds(name: str) -> list[bytes]:
    if name != "html":
        return list(SEEDS[name])
    own = [page.read_bytes()[:_PAGE_BYTES] for page in sorted(PAGES.glob("*.html"))]
    real = sorted(DATA.glob("*/html/*.gz"))
    chosen = random.Random(SEED).sample(real, min(20, len(real)))
    return own + [gzip.decompress(path.read_bytes())[:_PAGE_BYTES] for path in chosen]


def mutations(name: str, rounds: int) -> Iterator[bytes]:
    chance, all_seeds = random.Random(SEED), seeds(name)
    for _ in range(rounds):
        data = bytearray(chance.choice(all_seeds))
        for _ in range(chance.randint(1, 8)):
            at = chance.randint(0, len(data))
            match chance.randint(0, 3):
                case 0:
                    data[at:at] = chance.choice(_PARTS)
                case 1:
                    del data[at : at + chance.randint(1, 50)]
                case 2:
                    data[at : at + 1] = chance.randbytes(1)
                case _:
                    data[at:at] = data[: chance.randint(0, 200)]
        yield bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_raises(name: str) -> None:
    for data in mutations(name, ROUNDS):
        try:
            run(name, data)
        except Exception as error:
            raise AssertionError(f"seed {SEED}: {name} raises on {data[:2000]!r}") from error


@needs_native
def test_both_readers_agree_on_mutated_pages() -> None:
    python_extract = pure_python("trapline.extract").extract
    options = ExtractOptions(formats=frozenset(Format))
    for data in mutations("html", ROUNDS // 2):
        ours = extract(data, "text/html", "https://example.com/a", options)
        theirs = python_extract(data, "text/html", "https://example.com/a", options)
        assert ours == theirs, f"seed {SEED}: {data[:2000]!r}"


@needs_native
def test_both_readers_agree_on_real_pages() -> None:
    """A sample of all pages at hand; the whole takes minutes."""
    python_extract = pure_python("trapline.extract").extract
    real = sorted(DATA.glob("*/html/*.gz")) or sorted(PAGES.glob("*.html"))
    for path in random.Random(SEED).sample(real, min(15, len(real))):
        body = path.read_bytes()
        body = gzip.decompress(body) if path.suffix == ".gz" else body
        ours = extract(body, "text/html", "https://example.com/a")
        assert ours == python_extract(body, "text/html", "https://example.com/a"), path.name
