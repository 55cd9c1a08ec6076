"""A setting or an option that is not in the docs fails here."""

import pytest

from tools.reference_pages import DOCS, PAGES


@pytest.mark.parametrize("page", PAGES)
def test_page_says_what_the_code_says(page: str) -> None:
    assert (DOCS / page).read_text() == PAGES[page](), "run `make docs`"
