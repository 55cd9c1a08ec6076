from hypothesis import given
from hypothesis import strategies as st

from trapline.extract.summary import summarise

TEXT = """Foxes have returned to the city after an absence of thirty years. Dr. Ada Trapper counted
twelve foxes in the parks this spring. The weather was mild. Foxes find food in the city at night, and the
city gives foxes shelter under sheds. Some residents feed the foxes, which Dr. Trapper calls a mistake.
Buses run every ten minutes. A fox that is fed loses its fear and comes to harm in traffic. The council
will decide in May whether feeding foxes in the city is to be fined. Tickets are two euros."""


def test_a_summary_is_made_of_the_texts_own_sentences_in_order() -> None:
    summary = summarise(TEXT, title="Foxes in the city", sentences=3)
    plain = " ".join(TEXT.split())
    parts = [part if part.endswith(".") else part + "." for part in summary.split(". ") if part]
    assert summary.startswith("Foxes have returned to the city")
    assert "Buses" not in summary
    assert all(part.rstrip(".") in plain for part in parts)
    assert len(summary) < len(plain) * 0.6


def test_an_abbreviation_does_not_end_a_sentence() -> None:
    assert summarise(TEXT, sentences=9)[-3:] != "Dr."
    assert "Dr. Ada Trapper counted twelve foxes" in summarise(TEXT, sentences=9)


def test_the_same_text_gives_the_same_summary() -> None:
    assert summarise(TEXT) == summarise(TEXT)


def test_what_is_said_twice_is_taken_once() -> None:
    twice = "The mayor opened the new bridge over the river on Monday morning. " * 5
    assert summarise(twice).count("bridge") == 1


def test_short_texts_are_their_own_summary() -> None:
    assert summarise("Closed.") == "Closed."
    assert summarise("") == ""


def test_sentences_of_other_scripts() -> None:
    text = (
        "狐狸在三十年后回到了城市里面,生活在公园和街道之间,人们经常看到它们。" * 2
        + "居民们每天晚上都会看到狐狸在街上寻找食物和水,孩子们觉得非常高兴。"
    )
    assert summarise(text, sentences=1).endswith("。")


@given(st.text(max_size=400))
def test_any_text_has_a_bounded_summary(text: str) -> None:
    assert len(summarise(text, characters=200)) <= max(200, 500)
