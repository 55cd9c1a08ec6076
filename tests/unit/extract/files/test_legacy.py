"""DOC, XLS, PPT and MSG through the whole reader; the files are made in `compound`."""

import pytest

from tests.support.compound_files import compound, doc, msg, ppt, xls
from trapline.errors import VisitFailed
from trapline.extract import extract

FILES = {
    "report.doc": (doc("Foxes return\nThey are back in town."), ["Foxes return", "back in town."]),
    "prices.xls": (xls("Prices", [["item", "price"], ["saw", 12.5]]), ["Prices", "saw", "12.5"]),
    "talk.ppt": (ppt(["Foxes\nin town", "Thank you"]), ["Foxes", "in town", "Thank you"]),
    "mail.msg": (msg("Foxes", "Ada Trapper", "They are back."), ["Foxes", "They are back."]),
}


@pytest.mark.parametrize("name", FILES)
def test_what_a_file_of_the_nineties_says(name: str) -> None:
    body, expected = FILES[name]
    found = extract(body, None, f"https://files.example/{name}")
    assert [text for text in expected if text not in found.markdown] == []


def test_a_sheet_becomes_a_table() -> None:
    body, _ = FILES["prices.xls"]
    found = extract(body, "application/vnd.ms-excel", "https://files.example/prices.xls")
    assert "| saw | 12.5 |" in found.markdown


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (compound({"EncryptedPackage": b"secret" * 9}), "encrypted"),
        (compound({"Contents": b"a file of Works" * 9}), "no known format"),
        (FILES["report.doc"][0][:-700], "could not be read"),
    ],
    ids=["encrypted", "unknown", "cut off"],
)
def test_what_cannot_be_read_is_said(body: bytes, reason: str) -> None:
    with pytest.raises(VisitFailed) as failure:
        extract(body, "application/msword", "https://files.example/report.doc")
    assert reason in str(failure.value)
