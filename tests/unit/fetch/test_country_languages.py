"""A country stands for its languages, where none are named."""

import pytest

from trapline.api.firecrawl.requests.base_models import _COUNTRIES
from trapline.fetch.country_languages import _FIRST, _SPOKEN, languages_of
from trapline.pipeline.options import ScrapeOptions


@pytest.mark.parametrize(
    ("country", "languages"),
    [
        ("DE", ("de-DE", "de")),
        ("at", ("de-AT", "de")),
        ("US", ("en-US", "en")),
        ("BR", ("pt-BR", "pt")),
        ("CH", ("de-CH", "de", "fr-CH", "fr", "it-CH", "it")),
        ("CA", ("en-CA", "en", "fr-CA", "fr")),
        ("BE", ("nl-BE", "nl", "de-BE", "de", "fr-BE", "fr")),
        (None, ()),
    ],
)
def test_a_country_has_its_languages(country: str | None, languages: tuple[str, ...]) -> None:
    assert languages_of(country) == languages


def test_every_country_has_a_language_and_every_line_a_country() -> None:
    for country in _COUNTRIES:
        assert languages_of(country)
    named = {country for places in _SPOKEN.values() for country in places.split()} | set(_FIRST)
    assert named - _COUNTRIES <= {"XK"}  # Kosovo, which has no code of its own in the standard.


def test_languages_that_are_named_go_before_a_country() -> None:
    assert ScrapeOptions(country="FR").accept_language == "fr-FR;q=1.0,fr;q=0.9"
    assert ScrapeOptions(country="FR", languages=("en",)).accept_language == "en;q=1.0"
    assert ScrapeOptions().accept_language is None
