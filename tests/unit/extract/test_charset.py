"""Bytes become the text that was meant, whatever the page declares."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.extract import _native
from trapline.extract.charset import decode, utf8_in_python

RUSSIAN = "Привет, это обычный русский текст, достаточно длинный, чтобы угадать кодировку."


@pytest.mark.parametrize("encoding", ["windows-1251", "koi8-r", "iso-8859-5", "utf-8", "utf-16"])
def test_declared_in_the_header(encoding: str) -> None:
    body = f"<p>{RUSSIAN}".encode(encoding)
    assert RUSSIAN in decode(body, f"text/html; charset={encoding}").text


def test_declared_in_a_meta_tag() -> None:
    body = f"<meta charset=windows-1251><p>{RUSSIAN}".encode("cp1251")
    decoded = decode(body, "text/html")
    assert RUSSIAN in decoded.text
    assert not decoded.doubtful


def test_valid_utf8_beats_a_wrong_declaration() -> None:
    body = f"<meta charset=iso-8859-1><p>{RUSSIAN}".encode()
    assert RUSSIAN in decode(body, "text/html; charset=latin1").text


def test_a_declaration_that_does_not_fit_is_doubted() -> None:
    body = f"<meta charset=utf-8><p>{RUSSIAN * 3}".encode("cp1251")
    decoded = decode(body, "text/html; charset=utf-8")
    assert RUSSIAN in decoded.text
    assert decoded.doubtful


def test_one_broken_character_does_not_unseat_a_declaration() -> None:
    body = b"<p>" + RUSSIAN.encode() + b"\xff"
    decoded = decode(body, "text/html; charset=utf-8")
    assert RUSSIAN in decoded.text
    assert decoded.encoding == "utf-8"


def test_latin1_means_windows_1252() -> None:
    assert decode(b"<p>\x93caf\xe9\x94", "text/html; charset=iso-8859-1").text == "<p>“café”"


def test_utf16_without_a_mark() -> None:
    body = "<p>plain words without any mark</p>".encode("utf-16-le")
    assert decode(body, None).text == "<p>plain words without any mark</p>"


def test_an_unknown_name_is_ignored() -> None:
    assert decode(b"<p>caf\xe9 au lait", "text/html; charset=klingon").text == "<p>café au lait"


def test_japanese_by_escape() -> None:
    body = "<p>日本語の文章".encode("iso-2022-jp")
    assert "日本語" in decode(body, "text/html; charset=iso-2022-jp").text
    declared = decode(b"<meta charset=ISO-2022-JP>" + body, "text/html")
    assert "日本語" in declared.text
    assert declared.encoding == "iso-2022-jp"
    assert decode(b"<meta charset=utf-8><p>2022", None).encoding == "utf-8"


def test_nothing() -> None:
    assert decode(b"", None).text == ""


LETTERS = st.sampled_from(
    ["a", "plain letters ", "sixteen letters.", "\x00", "\x7f", "\x80", "\u00ff", "\u0100", "\u07ff", "\u0800", "\u2014",
     "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
)  # fmt: skip
BROKEN = st.sampled_from(
    [b"\x80", b"\xc0\xaf", b"\xc1\xbf", b"\xc2", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xef\xbf", b"\xf0\x8f\xbf\xbf",
     b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\xe2\x28\xa1"]
)  # fmt: skip


@given(
    st.lists(LETTERS.map(str.encode) | BROKEN | st.binary(max_size=20), max_size=8).map(b"".join)
)
def test_bytes_are_read_as_python_reads_them(body: bytes) -> None:
    assert _native.utf8(body) == utf8_in_python(body)


@given(st.lists(LETTERS, max_size=20).map("".join))
def test_texts_are_as_narrow_as_pythons_own(text: str) -> None:
    found = _native.utf8(text.encode())
    assert found == text
    assert sys.getsizeof(found) == sys.getsizeof("".join([*text]))


@pytest.mark.parametrize("body", ["text", bytearray(b"a"), None])
def test_what_is_no_bytes_is_refused(body: object) -> None:
    with pytest.raises(TypeError):
        _native.utf8(body)  # type: ignore[arg-type]


def test_only_bytes_in_utf8_are_looked_through_instead_of_their_text() -> None:
    assert decode("é".encode(), None).source == "é".encode()
    assert decode(b"\xef\xbb\xbfa", None).source == "a"
    assert decode("é".encode("utf-16"), None).source == "é"
    assert decode(RUSSIAN.encode("koi8-r"), "text/html; charset=koi8-r").source == RUSSIAN
