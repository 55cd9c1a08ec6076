"""The headline of a plain page is known without weighing, and is the same."""

from hypothesis import given
from hypothesis import strategies as st

from trapline.extract.metadata.headline import best_headline, obvious_headline

PARTS = st.lists(
    st.sampled_from(["os", "The os module", "Docs", "Docs", "|", " - ", ":", " ", "1.2.", "\u2014", "\u00b6", "a b", "\u00bb"]),
    min_size=1,
    max_size=6,
).map("".join)  # fmt: skip


@given(PARTS, st.lists(PARTS, max_size=2), st.sampled_from(["", "Docs", "os", "The os module"]))
def test_plain_headlines_are_what_weighing_gives(
    title: str, headings: list[str], site_name: str
) -> None:
    headings = [" ".join(heading.split()) for heading in headings]
    plain = obvious_headline(headings, title)
    assert plain is None or plain == best_headline(headings, None, title, site_name)


def test_a_heading_that_the_title_begins_with_is_plain() -> None:
    assert obvious_headline(["os - paths"], "os - paths | Docs") is None
    assert obvious_headline(["os"], "os \u2014 Docs") == "os"
    assert obvious_headline([], "The os module") == "The os module"
    assert obvious_headline([], "os | Docs") is None
