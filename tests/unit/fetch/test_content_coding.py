"""Content codings are undone whole, piece by piece, and never past the limit."""

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ExitCode, VisitFailed
from trapline.fetch.content_coding import BodyDecoder, decoder_for

TEXT = b"<!doctype html><p>Words, and words again.</p>" * 300
LIMIT = 10**6


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


CODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "brotli": ("br", lambda data: brotli.compress(data, quality=2)),
    "zstd": ("zstd", zstandard.compress),
    "twice": ("gzip, br", lambda data: brotli.compress(gzip.compress(data), quality=2)),
}


def undo(header: str, data: bytes, size: int = 1000, limit: int = LIMIT) -> bytes:
    decoder = decoder_for(header, limit)
    assert isinstance(decoder, BodyDecoder)
    parts = [decoder.decode(data[at : at + size]) for at in range(0, len(data), size)]
    decoder.finish()
    return b"".join(parts)


@pytest.mark.parametrize("name", CODERS)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_whole(name: str, size: int) -> None:
    header, encode = CODERS[name]
    assert undo(header, encode(TEXT), size) == TEXT


@given(st.sampled_from(sorted(CODERS)), st.binary(max_size=3000), st.integers(1, 500))
def test_any_bytes(name: str, data: bytes, size: int) -> None:
    header, encode = CODERS[name]
    assert undo(header, encode(data), size) == data


@pytest.mark.parametrize("name", CODERS)
def test_cut(name: str) -> None:
    header, encode = CODERS[name]
    with pytest.raises(VisitFailed) as failure:
        undo(header, encode(TEXT)[:-4])
    assert failure.value.code is ExitCode.TRUNCATED


@pytest.mark.parametrize("name", CODERS)
def test_bomb_is_refused_before_it_goes_off(name: str) -> None:
    header, encode = CODERS[name]
    decoder = decoder_for(header, LIMIT)
    assert decoder is not None
    with pytest.raises(VisitFailed) as failure:
        decoder.decode(encode(bytes(100 * LIMIT)))
    assert failure.value.code is ExitCode.DECOMPRESSED_TOO_LARGE


@pytest.mark.parametrize("name", CODERS)
def test_exactly_the_limit_is_allowed(name: str) -> None:
    header, encode = CODERS[name]
    assert len(undo(header, encode(bytes(LIMIT)), 10**6)) == LIMIT
    with pytest.raises(VisitFailed):
        undo(header, encode(bytes(LIMIT + 1)), 10**6)


@pytest.mark.parametrize("header", ["gzip", "br", "zstd", "deflate"])
def test_not_what_it_says(header: str) -> None:
    with pytest.raises(VisitFailed) as failure:
        undo(header, b"<html>not packed at all, whatever was said</html>")
    assert failure.value.code in {ExitCode.MALFORMED_RESPONSE, ExitCode.TRUNCATED}


def test_members_and_frames_follow_each_other() -> None:
    assert undo("gzip", gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"
    assert undo("zstd", zstandard.compress(b"one") + zstandard.compress(b"two")) == b"onetwo"


def test_what_follows_the_end_is_ignored() -> None:
    assert undo("gzip", gzip.compress(TEXT) + b"garbage") == TEXT


def test_no_bytes_are_no_stream() -> None:
    decoder = decoder_for("gzip", LIMIT)
    assert decoder is not None
    decoder.finish()


@pytest.mark.parametrize("header", [None, "", "identity", "utf-8", "hollin"])
def test_unknown_codings_are_passed_through(header: str | None) -> None:
    assert decoder_for(header, LIMIT) is None


def test_too_many_codings() -> None:
    with pytest.raises(VisitFailed):
        decoder_for("gzip, gzip, gzip, gzip", LIMIT)
