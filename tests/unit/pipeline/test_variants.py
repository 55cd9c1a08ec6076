"""The cache key: every option shapes what is stored, shapes only the answer, or neither."""

from typing import Any

import pytest

from trapline.pipeline.options import MapOptions, ScrapeOptions, VisitOptions

# What shapes the fetch or the stored text, with a value that is not the default: in the key.
SHAPE_WHAT_IS_STORED: dict[str, Any] = {
    "headers": {"Cookie": "a=1"},
    "mobile": True,
    "languages": ["de"],
    "country": "FR",
    "proxy": "http://proxy.test:8080",
    "verify_tls": False,
    "ignore_selectors": [".advert"],
    "browser": "always",
    "wait": 1.0,
    "actions": [{"type": "scroll"}],
    "screenshot": {"type": "screenshot"},
    "scroll_to_end": True,
}
# What is made of the stored bytes for each caller.
SHAPE_THE_ANSWER: dict[str, Any] = {
    "formats": ["html"],
    "only_main_content": False,
    "include_tags": ["main"],
    "exclude_tags": ["nav"],
    "remove_base64_images": False,
    "attributes": [{"selector": "a", "attribute": "href"}],
    "wishes": [{"kind": "summary"}],
    "track_changes": True,
    "tracking": {"tag": "x"},
    "with_body": True,
    "read_files": False,
    "max_pages": 3,
}
# Whether, when and how politely a page is asked for, whether it is kept, and what counts as a change.
# Advertising is part of the key only where a browser is requested.
SHAPE_NEITHER: dict[str, Any] = {
    "block_ads": False,
    "timeout": 5,
    "max_age": 60,
    "min_age": 60,
    "only_cached": True,
    "store": False,
    "zero_data_retention": True,
    "site_id": "0191d2c8-0000-7000-8000-000000000000",
    "ignore_robots": True,
    "robots_user_agent": "Bot",
    "delay": 1,
    "max_concurrency": 2,
    "force": True,
    "only_due": True,
    "store_noindex": False,
    "ignore_patterns": ["visitors"],
    "index": True,
    "source_id": "0191d2c8-0000-7000-8000-000000000001",
}


def _variant(**options: Any) -> bytes:
    of_page = {name: options.pop(name) for name in list(options) if name in _OF_PAGE}
    return VisitOptions.parse(scrape=of_page, **options).variant


_OF_PAGE = frozenset(ScrapeOptions.__struct_encode_fields__)


def test_every_option_is_classified() -> None:
    fields = [*ScrapeOptions.__struct_encode_fields__, *VisitOptions.__struct_encode_fields__]
    classified = [*SHAPE_WHAT_IS_STORED, *SHAPE_THE_ANSWER, *SHAPE_NEITHER]
    assert sorted(classified) == sorted(set(fields) - {"scrape"})


def test_what_shapes_the_stored_page_is_in_the_key() -> None:
    variants = {_variant(**{name: value}) for name, value in SHAPE_WHAT_IS_STORED.items()}
    assert len(variants) == len(SHAPE_WHAT_IS_STORED)
    assert {len(variant) for variant in variants} == {16}


@pytest.mark.parametrize("option", (SHAPE_THE_ANSWER | SHAPE_NEITHER).items(), ids=lambda o: o[0])
def test_nothing_else_is_in_the_key(option: tuple[str, Any]) -> None:
    assert _variant(**dict([option])) == b""


def test_the_same_request_has_the_same_key() -> None:
    one = _variant(headers={"Cookie": "a=1", "X-B": "2"}, ignore_selectors=["a", "b"])
    other = _variant(headers={"x-b": "2", "COOKIE": "a=1"}, ignore_selectors=["b", "a"])
    assert one == other != _variant(headers={"Cookie": "A=1", "X-B": "2"})
    # A country stands for its languages, and headers are not taken for each other.
    assert _variant(country="FR") == _variant(languages=["fr-FR", "fr"])
    assert _variant(headers={"a": "b", "c": "d"}) != _variant(headers={"a": 'b","c":"d'})


def test_own_headers_read_no_cache() -> None:
    own = {"Authorization": "Bearer x"}
    for wish in ({"max_age": 60.0}, {"min_age": 0.0}, {"only_cached": True}):
        assert ScrapeOptions(**wish).reads_cache  # type: ignore[arg-type]
        assert not ScrapeOptions(headers=own, **wish).reads_cache  # type: ignore[arg-type]
    assert not ScrapeOptions(max_age=0).reads_cache


def test_a_map_shows_what_anybody_is_given_and_its_own() -> None:
    own = MapOptions(url="https://example.com/", scrape=ScrapeOptions(headers={"Cookie": "a=1"}))
    plain = MapOptions(url="https://example.com/")
    assert set(own.known_variants) == {own.variant, *plain.known_variants}
    assert set(plain.known_variants) == {b"", _variant(verify_tls=False)}
