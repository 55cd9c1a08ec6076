"""WARC as a format: what we write others read, what others write we read, what is broken is said."""

import gzip
import io
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from trapline.archive.warc.http_response import parse_response
from trapline.archive.warc.reader import WarcRecord, check_digest, read_records
from trapline.archive.warc.writer import NewWarcRecord, RecordType, WarcWriter, fields
from trapline.errors import InvalidInput

NOW = datetime(2026, 11, 15, 12, 30, 1, 250_000, UTC)
MOST = 1 << 20
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"


def written(*blocks: bytes) -> bytes:
    out = io.BytesIO()
    writer = WarcWriter(out, uuid4())
    for block in blocks:
        writer.write(
            NewWarcRecord(RecordType.RESPONSE, uuid4(), NOW, block, "https://a.test/", b"hello")
        )
    return out.getvalue()


def read(data: bytes, most: int = MOST) -> list[WarcRecord]:
    return list(read_records(io.BytesIO(data), most))


def plain(headers: bytes, block: bytes = b"") -> bytes:
    return b"WARC/1.1\r\n" + headers + b"\r\n\r\n" + block + b"\r\n\r\n"


def test_others_read_what_we_write() -> None:
    found = []
    for record in ArchiveIterator(io.BytesIO(written(ANSWER, ANSWER)), check_digests="raise"):
        found.append(record.content_stream().read())
        assert record.rec_type == "response"
        assert record.rec_headers["WARC-Target-URI"] == "https://a.test/"
        assert record.rec_headers["WARC-Date"] == "2026-11-15T12:30:01.250000Z"
        assert record.http_headers.get_statuscode() == "200"
    assert found == [b"hello", b"hello"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # warcio leaves its temporary files open
@pytest.mark.parametrize("compressed", [True, False])
def test_we_read_what_others_write(compressed: bool) -> None:
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=compressed)
    writer.write_record(writer.create_warcinfo_record("x.warc", {"software": "another"}))
    headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
    for n in range(30):
        payload = io.BytesIO(b"%d " % n * 9000)
        record = writer.create_warc_record(
            f"https://a.test/{n}", "response", payload=payload, http_headers=headers
        )
        writer.write_record(record)
    found = read(out.getvalue())
    assert [record.type for record in found] == ["warcinfo"] + ["response"] * 30
    assert found[0].block is None
    for n, record in enumerate(found[1:]):
        check_digest(record)
        assert record.url == f"https://a.test/{n}"
        assert record.block is not None
        assert parse_response(record.block).body == b"%d " % n * 9000


def test_our_own_come_back() -> None:
    (one, two) = read(written(ANSWER, ANSWER))
    assert (one.number, two.number) == (1, 2)
    assert one.block == ANSWER
    assert one.date == NOW


def test_what_is_too_large_is_passed_over() -> None:
    large = b"HTTP/1.1 200 OK\r\n\r\n" + bytes(3 * MOST)
    found = read(written(ANSWER, large, ANSWER))
    assert [record.block is None for record in found] == [False, True, False]
    assert found[1].length == len(large)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no WARC record"),
        (b"\r\n\r\n", "no WARC record"),
        (b"<!doctype html>\n", "does not begin"),
        (gzip.compress(b"hello\n", mtime=0), "does not begin"),
        (plain(b"WARC-Type: response"), "how long"),
        (plain(b"WARC-Type: response\r\nContent-Length: -1"), "how long"),
        (plain(b"WARC-Type: response\r\nContent-Length: 1e3"), "how long"),
        (plain(b"WARC-Type: response\r\nContent-Length: " + b"9" * 30), "how long"),
        (plain(b"Content-Length: 100\r\nWARC-Type: response", b"short"), "middle of record 1"),
        (plain(b"Content-Length: 100\r\nWARC-Type: request", b"short"), "middle of record 1"),
        (b"WARC/1.0\r\nWARC-Type: response\r\n", "head of record 1"),
        (b"WARC/1.0\r\nno name\r\n\r\n", "without a name"),
        (b"WARC/1.0\r\n" + b"a: b\r\n" * 20_000 + b"\r\n", "too large"),
        (b"WARC/1.0\r\na: " + b"x" * 100_000, "too long"),
        (b"x" * 100_000, "too long"),
    ],
)
def test_what_is_broken_is_said(data: bytes, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read(data)


@pytest.mark.parametrize("cut", [3, 15, 60, -30, -9, -1])
def test_a_cut_file_gives_what_came_before(cut: int) -> None:
    whole = written(ANSWER)
    given_out = read_records(io.BytesIO(whole + whole[:cut]), MOST)
    assert next(given_out).block == ANSWER
    with pytest.raises(InvalidInput, match=r"ends in|damaged"):
        list(given_out)


def test_a_damaged_member_is_said() -> None:
    whole = bytearray(written(ANSWER))
    whole[len(whole) // 2] ^= 0xFF
    with pytest.raises(InvalidInput):
        read(bytes(whole))


def test_a_bomb_needs_no_memory() -> None:
    bomb = gzip.compress(
        b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 200000000\r\n\r\n"
        + bytes(200_000_000),
        1,
    )
    with pytest.raises(InvalidInput, match="ends in the middle"):
        read(bomb[: len(bomb) // 2])


def test_a_wrong_digest_is_found() -> None:
    for digest, right in (
        ("sha1:" + "A" * 32, False),
        ("sha256:" + "0" * 64, False),
        ("x:y", True),
    ):
        headers = {"warc-block-digest": digest}
        record = WarcRecord(1, "response", headers, 5, b"hello")
        if right:
            check_digest(record)
        else:
            with pytest.raises(InvalidInput, match="digest"):
                check_digest(record)


def test_answers_are_taken_apart() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\n wo\r\n0\r\n\r\n"
    assert parse_response(chunked).body == b"hello wo"
    # The header was kept, the chunks were not.
    unchunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello world"
    assert parse_response(unchunked).body == b"hello world"
    bare = b"HTTP/1.0 404\n\nno"
    assert (parse_response(bare).status, parse_response(bare).body) == (404, b"no")
    with pytest.raises(InvalidInput):
        parse_response(b"GET / HTTP/1.1\r\n\r\n")


@given(st.binary(max_size=300))
def test_no_answer_does_harm(data: bytes) -> None:
    for block in (data, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + data):
        try:
            parse_response(block)
        except InvalidInput:
            continue


@given(st.binary(max_size=300))
def test_no_file_does_harm(data: bytes) -> None:
    for file in (data, b"WARC/1.1\r\n" + data, gzip.compress(b"WARC/1.1\r\n" + data)):
        try:
            read(file)
        except InvalidInput:
            continue


def test_a_value_cannot_make_another_field() -> None:
    assert fields([("a", "b\r\nc: d")]) == b"a: b c: d\r\n"


def test_a_record_without_a_date_is_said() -> None:
    for text in ("", "yesterday", "2026-11-15T12:00:00"):
        with pytest.raises(InvalidInput, match="date"):
            _ = WarcRecord(1, "response", {"warc-date": text}, 0, b"").date
