"""Header sets as CDNs and caches document them, each with its status, layer and point of presence."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from trapline.fetch.cache_status import CacheStatus, cache_status
from trapline.fetch.structured_fields import parse_list

_FILE = Path(__file__).with_name("cache_status_vectors.jsonl")
VECTORS: list[dict[str, Any]] = [json.loads(line) for line in _FILE.read_text().splitlines()]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_headers_give_their_status(vector: dict[str, Any]) -> None:
    result = cache_status([(name, value) for name, value in vector["headers"]])
    expected = {name: vector[name] for name in ("status", "layer", "pop", "header")}
    assert {name: getattr(result, name) for name in expected} == expected


def test_there_are_many_vectors_of_every_status() -> None:
    assert len(VECTORS) >= 120
    assert {vector["status"] for vector in VECTORS} == {str(status) for status in CacheStatus}


def test_the_raw_value_and_the_age_are_there() -> None:
    result = cache_status([("X-Cache", "HIT"), ("X-Cache", "MISS"), ("Age", "17")])
    assert (result.raw, result.age, result.certain) == ("HIT, MISS", 17, True)


def test_age_alone_is_not_certain() -> None:
    assert not cache_status([("Age", "9")]).certain


def test_only_fastly_hides_what_it_passes() -> None:
    assert cache_status([("X-Served-By", "cache-fra-1-FRA"), ("X-Cache", "MISS")]).hides_bypass
    assert not cache_status([("X-Cache", "MISS")]).hides_bypass


class TestStructuredFields:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("token/a:b", "token/a:b"),
            (r'"a \"quoted\" \\ string"', r'a "quoted" \ string'),
            ("-17", -17),
            ("3.25", Decimal("3.25")),
            ("?1", True),
            (":aGk=:", b"hi"),
        ],
    )
    def test_a_value(self, text: str, value: object) -> None:
        items = parse_list(text)
        assert items is not None
        assert [item.value for item in items] == [value]

    def test_parameters(self) -> None:
        (item,) = parse_list("a;x; y=2;x=?0") or ()
        assert item.parameters == {"x": False, "y": 2}

    def test_an_empty_field_is_an_empty_list(self) -> None:
        assert parse_list("  ") == ()

    @pytest.mark.parametrize(
        "text",
        ["a,", "a,,b", "a;B", "a;", '"open', "1.2.3", "1234567890123456", "(a b)", ":a:", "é"],
    )
    def test_a_malformed_field_is_nothing(self, text: str) -> None:
        assert parse_list(text) is None
