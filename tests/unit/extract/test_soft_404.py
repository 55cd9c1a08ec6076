"""Which pages say that they are not there, and which only speak of it."""

import pytest

from trapline.extract import extract
from trapline.extract.soft_404 import is_soft_404

SHORT = "Sorry, the page you are looking for does not exist or has been moved."


def _says(title: str, heading: str = "", text: str = SHORT, path: str = "a/b") -> bool:
    html = f"<title>{title}</title><main><h1>{heading}</h1><p>{text}</p></main>"
    return is_soft_404(
        extract(html.encode(), "text/html; charset=utf-8", f"https://example.com/{path}")
    )


@pytest.mark.parametrize(
    "title",
    [
        "404",
        "404 Not Found",
        "Error 404",
        "HTTP 404 - page missing",
        "Page not found",
        "Page Not Found | Example",
        "The page could not be found",
        "This page doesn't exist",
        "The product no longer exists",
        "Not Found",
        "Fehler 404: Seite nicht gefunden",
        "Page introuvable",
        "Página no encontrada",
        "Página não encontrada",
        "Pagina non trovata",
        "Страница не найдена",
        "ページが見つかりません",
    ],
)
def test_error_pages_in_many_words(title: str) -> None:
    assert _says(title, "Oh dear")
    assert _says("Example", title)


@pytest.mark.parametrize(
    "title",
    [
        "",
        "About us",
        "Room 404",
        "404 ways to cook rice",
        "Lost and found",
        "Found: a page from the diary",
        "How the missing page was found",
        "What a page is",
        "We found that pages do not exist in scrolls",
        "The Not Found Orchestra",
    ],
)
def test_other_pages(title: str) -> None:
    assert not _says(title, "Welcome", "A few words about something else entirely.")


def test_an_article_about_status_codes_is_an_article() -> None:
    text = "The status says that the server has no such page, and a client must not ask. " * 12
    assert not _says("404 Not Found", "404 Not Found", text)


def test_a_start_page_is_there() -> None:
    assert not _says("Page not found", "Page not found", path="")


@pytest.mark.parametrize("body", [b"", b"\x00" * 100, b"<title>" + b"404 " * 100_000, b"#" * 5000])
def test_what_is_hardly_a_page(body: bytes) -> None:
    document = extract(body, "text/html", "https://example.com/a")
    assert is_soft_404(document) in (True, False)
