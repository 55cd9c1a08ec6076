"""The garbage collector rests while a page is worked on, and is left as it was found."""

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from trapline.extract import page
from trapline.extract.gc_pause import without_gc
from trapline.extract.html.outline import Outline, read_outline


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    yield
    gc.enable()


@without_gc
def inside(act: Callable[[], object]) -> object:
    assert not gc.isenabled()
    return act()


def test_rests_inside_and_goes_on_after() -> None:
    assert inside(gc.isenabled) is False
    assert gc.isenabled()


def test_goes_on_after_an_error() -> None:
    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        inside(fail)
    assert gc.isenabled()


def test_stays_off_for_whoever_switched_it_off() -> None:
    gc.disable()
    inside(lambda: inside(gc.isenabled))
    assert not gc.isenabled()


def test_goes_on_after_it_was_entered_twice() -> None:
    def twice() -> bool:
        inside(gc.isenabled)
        return gc.isenabled()

    assert inside(twice) is False
    assert gc.isenabled()


def test_is_not_kept_off_by_threads_that_overlap() -> None:
    one_inside, both_inside, one_left = (Barrier(2, timeout=30) for _ in range(3))

    def leave_first() -> bool:
        inside(lambda: (one_inside.wait(), both_inside.wait()))
        on = gc.isenabled()
        one_left.wait()
        return on

    def leave_last() -> None:
        one_inside.wait()
        inside(lambda: (both_inside.wait(), one_left.wait()))

    with ThreadPoolExecutor(2) as threads:
        first, last = threads.submit(leave_first), threads.submit(leave_last)
        last.result()
        assert first.result()
    assert gc.isenabled()


def test_a_page_is_read_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    states = []

    def noted(tree: page.turbohtml.Document) -> Outline:
        states.append(gc.isenabled())
        return read_outline(tree)

    monkeypatch.setattr(page, "read_outline", noted)
    page.extract(b"<p>Some words of a page", "text/html", "https://example.org/")
    assert states == [False]
    assert gc.isenabled()
