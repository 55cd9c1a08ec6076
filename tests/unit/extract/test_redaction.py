"""Redaction: what is personal goes, what only looks like it stays, and it takes linear time."""

import time
from typing import Any

import pytest

from trapline.extract.redaction import Redaction


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Write to jo.doe+x@mail.example.co.uk!", "Write to <EMAIL>!"),
        ("[Mail](mailto:jo@example.com)", "[Mail](mailto:<EMAIL>)"),
        ("jo(at)example.com", "<EMAIL>"),
        ("Call +43 664 123 45 67 now", "Call <PHONE> now"),
        ("(555) 123-4567", "<PHONE>"),
        ("[Ring](tel:+15551234567)", "[Ring](tel:<PHONE>)"),
        ("0664 1234567", "<PHONE>"),
        ("Card 4111 1111 1111 1111.", "Card <FINANCIAL>."),
        ("AT61 1904 3002 3457 3201", "<FINANCIAL>"),
        ("DE89370400440532013000", "<FINANCIAL>"),
        ("from 192.168.17.4 to", "from <LOCATION> to"),
        ("at 2001:db8::8a2e:370:7334 now", "at <LOCATION> now"),
        ("password: hunter22", "<SECRET>"),
        ("Authorization: Bearer abcdefghijklmnopqrstuv", "Authorization: Bearer <SECRET>"),
        ("123-45-6789", "<SECRET>"),
    ],
)
def test_personal_data_is_replaced(text: str, redacted: str) -> None:
    assert Redaction().text(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "On 2026-11-18 at 09:30 and on 18.11.2026",
        "Version 1.2.3.4000 of 10.000.000.000 things",
        "Order 4111 1111 1111 1112",
        "It costs 1 299 kr and 12,345.67",
        "AT62 1904 3002 3457 3201"[:12],
        "a @ b and std::vector",
        "## Chapter 12",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    assert Redaction().text(text) == text


@pytest.mark.parametrize(
    ("style", "shown"), [("tag", "<EMAIL>"), ("mask", "*" * 6), ("remove", "")]
)
def test_each_style(style: Any, shown: str) -> None:
    assert Redaction(style=style).text("a@b.co") == shown


def test_only_the_chosen_entities_go() -> None:
    text = "a@b.example, +43 664 1234567"
    assert Redaction(frozenset({"PHONE"})).text(text) == "a@b.example, <PHONE>"


def test_names_go_wherever_they_stand_and_the_longest_first() -> None:
    redaction = Redaction().with_names(
        [("Ann", "PERSON"), ("Ann Lee", "PERSON"), ("Graz", "LOCATION")]
    )
    assert redaction.text("ann lee met Annette and Ann in Graz.") == (
        "<PERSON> met Annette and <PERSON> in <LOCATION>."
    )


def test_all_strings_of_a_document_are_redacted() -> None:
    value = {
        "markdown": "a@b.example",
        "links": ["mailto:a@b.example", 1],
        "json": {"to": "a@b.example"},
    }
    assert Redaction().value(value) == {
        "markdown": "<EMAIL>",
        "links": ["mailto:<EMAIL>", 1],
        "json": {"to": "<EMAIL>"},
    }


@pytest.mark.parametrize("piece", ["a", "1", "1 ", "a.", "@", ":a", "eyJ", "-", "A1 ", "1.", "(1"])
def test_hostile_texts_take_linear_time(piece: str) -> None:
    times = []
    for size in (20_000, 200_000):
        start = time.process_time()
        Redaction().text(piece * (size // len(piece)))
        times.append(time.process_time() - start)
    assert times[1] < 40 * max(times[0], 0.005)
