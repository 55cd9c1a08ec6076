"""What commands print is for people, or JSON for programs."""

import pytest

from trapline.cli import terminal


def test_hashes_are_printed_in_hex(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show_one({"content_hash": b"\xc4\x00\x14"}, as_json=False)
    terminal.show([{"content_hash": b"\xc4\x00\x14"}], as_json=False)
    printed = capsys.readouterr().out
    assert printed.count("c40014") == 2
    assert "b'" not in printed
