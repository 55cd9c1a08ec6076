"""The garbage collector rests while a page is worked on, and is left as it was found."""

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from trapline.extract import page
from trapline.extract.collector import HeldOff
from trapline.extract.outline import Outline, read_outline


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    yield
    gc.enable()


def test_rests_inside_and_goes_on_after() -> None:
    with HeldOff():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_goes_on_after_an_error() -> None:
    with pytest.raises(ValueError, match="broken"), HeldOff():
        raise ValueError("broken")
    assert gc.isenabled()


def test_stays_off_for_whoever_switched_it_off() -> None:
    gc.disable()
    held_off = HeldOff()
    with held_off, held_off:
        pass
    assert not gc.isenabled()


def test_goes_on_after_it_was_entered_twice() -> None:
    held_off = HeldOff()
    with held_off, held_off:
        assert not gc.isenabled()
    assert gc.isenabled()


def test_is_not_kept_off_by_threads_that_overlap() -> None:
    held_off, both_inside, one_left = HeldOff(), Barrier(2, timeout=30), Barrier(2, timeout=30)

    def leave_first() -> bool:
        with held_off:
            both_inside.wait()
        on = gc.isenabled()
        one_left.wait()
        return on

    def leave_last() -> None:
        with held_off:
            both_inside.wait()
            one_left.wait()

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
