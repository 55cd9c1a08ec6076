"""Bytes are recognised, and weighed against what the server says."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.fetch.sniff import essence, media_type, sniff

HTML = "text/html"
PDF = "application/pdf"


def packed(*members: str, mimetype: str | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if mimetype is not None:
            archive.writestr("mimetype", mimetype)
        for member in members:
            archive.writestr(member, "x" * 100)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<!doctype html><title>x</title>", HTML),
        (b"  \r\n\t<!DOCTYPE HTML>", HTML),
        (b"<html lang=en>", HTML),
        (b"<P>words", HTML),
        (b"<!-- a comment first -->", HTML),
        (b"\xef\xbb\xbf<html>", HTML),
        ("\ufeff<html><p>x".encode("utf-16-le"), HTML),
        (b"<pre-tend>", "text/plain"),
        (b"<?xml version='1.0'?><a/>", "text/xml"),
        (b"<?xml version='1.0'?><rss version='2.0'>", "application/rss+xml"),
        (b"<?xml version='1.0'?><feed xmlns='x'>", "application/atom+xml"),
        (b"<?xml version='1.0'?><html xmlns='x'>", "application/xhtml+xml"),
        (b"<?xml version='1.0'?><rss><x><![CDATA[<html>]]>", "application/rss+xml"),
        (b"<svg xmlns='x'>", "image/svg+xml"),
        (b"%PDF-1.7\n", PDF),
        (b"{\\rtf1", "application/rtf"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"\x00\x00\x00\x20ftypavif", "image/avif"),
        (b"\x00\x00\x00\x20ftypisom", "video/mp4"),
        (b"BM\x00\x01\x00\x00\x00\x00\x00\x00\x36", "image/bmp"),
        (b"BMW is a make of cars", "text/plain"),
        (b"\x1f\x8b\x08\x00", "application/gzip"),
        (packed("word/document.xml"), "wordprocessingml.document"),
        (packed("docProps/core.xml", "xl/workbook.xml"), "spreadsheetml.sheet"),
        (packed("ppt/presentation.xml"), "presentationml.presentation"),
        (packed("a.txt"), "application/zip"),
        (packed(mimetype="application/epub+zip"), "application/epub+zip"),
        (
            packed(mimetype="application/vnd.oasis.opendocument.text"),
            "application/vnd.oasis.opendocument.text",
        ),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "WordDocument".encode("utf-16-le"),
            "application/msword",
        ),
        (b"just words", "text/plain"),
        ("Größe".encode("latin-1"), "text/plain"),
        (b"a\x00b", "application/octet-stream"),
        (b"", "text/plain"),
    ],
)
def test_sniff(body: bytes, kind: str) -> None:
    found = sniff(body)
    assert found == kind or found.endswith("officedocument." + kind)


@given(st.binary(max_size=2000))
def test_anything_has_a_type(body: bytes) -> None:
    assert essence(sniff(body)) == sniff(body)


def test_office_members_are_found_at_the_end_of_a_large_file() -> None:
    body = packed("media/picture.bin", "word/document.xml")
    assert sniff(body[:100] + bytes(10**6) + body[100:]).endswith("wordprocessingml.document")


@pytest.mark.parametrize(
    ("declared", "sniffed", "kind"),
    [
        (None, HTML, HTML),
        ("", PDF, PDF),
        ("*/*", PDF, PDF),
        ("nonsense", HTML, HTML),
        ("text/html/please", HTML, HTML),
        ("Text/HTML; charset=utf-8", HTML, HTML),
        ("text/html", PDF, PDF),
        ("text/html", "application/rss+xml", "application/rss+xml"),
        ("text/html", "application/xhtml+xml", HTML),
        ("text/html", "text/plain", HTML),
        ("text/html", "application/octet-stream", HTML),
        ("text/plain", HTML, "text/plain"),
        ("text/plain", "application/octet-stream", "application/octet-stream"),
        ("text/plain", PDF, PDF),
        ("application/octet-stream", HTML, HTML),
        ("application/octet-stream", "text/plain", "application/octet-stream"),
        ("application/pdf", HTML, HTML),
        ("application/json", "text/plain", "application/json"),
        ("image/jpeg", "image/png", "image/png"),
        ("image/svg+xml", "text/xml", "image/svg+xml"),
        ("application/zip", "application/epub+zip", "application/epub+zip"),
    ],
)
def test_media_type(declared: str | None, sniffed: str, kind: str) -> None:
    assert media_type(declared, sniffed) == kind
