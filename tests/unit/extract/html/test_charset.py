"""Bytes become the text that was meant, whatever the page declares."""

import pytest

from trapline.extract.html.charset import decode

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


def test_only_bytes_in_utf8_are_looked_through_instead_of_their_text() -> None:
    assert decode("é".encode(), None).source == "é".encode()
    assert decode(b"\xef\xbb\xbfa", None).source == "a"
    assert decode("é".encode("utf-16"), None).source == "é"
    assert decode(RUSSIAN.encode("koi8-r"), "text/html; charset=koi8-r").source == RUSSIAN
