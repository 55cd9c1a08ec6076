"""Numbers and times as people read them; strangers' text without its tricks."""

from datetime import UTC, datetime, timedelta

import pytest

from trapline.dashboard import charts, diffs, formatting
from trapline.dashboard.charts import Column
from trapline.dashboard.views.search import highlighted
from trapline.dashboard.views.sign_in import local_path
from trapline.pipeline.reports.job_progress import pages_per_minute


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (999, "999"), (1234, "1.23k"), (1_500_000, "1.5M"), (3e12, "3T"), (None, "\u2013")],
)
def test_compact(value: float | None, text: str) -> None:
    assert formatting.compact(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 2**30, "5 GiB"), (2**41, "2 TiB")],
)
def test_size(value: float, text: str) -> None:
    assert formatting.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0049, "5 ms"),
        (1.5, "1.5 s"),
        (timedelta(seconds=61), "1 min 1 s"),
        (3660, "1 h 1 min"),
        (timedelta(days=2, hours=3), "2 d 3 h"),
    ],
)
def test_duration(value: timedelta | float, text: str) -> None:
    assert formatting.duration(value) == text


def test_numbers_stay_exact() -> None:
    assert formatting.number(2**53 + 1) == "9,007,199,254,740,993"
    assert str(2**63) in formatting.pretty({"big": 2**63})


def test_text_is_bounded_and_loses_what_deceives() -> None:
    assert len(formatting.plain("x" * 10_000_000)) == 200
    assert formatting.plain("gpj.\u202eexe\u2066\u200b\x00\x1b[31m") == "gpj.exe[31m"
    assert "more characters" in formatting.block("x" * 10_000_000)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", " http://a", "vbscript:x", "", None, "//a"]
)
def test_only_web_addresses_are_links(url: str | None) -> None:
    assert formatting.link(url) is None
    assert formatting.link("HTTPS://a.test/") == "HTTPS://a.test/"


def test_times_are_elements_that_a_script_can_read() -> None:
    at = datetime(2026, 11, 18, 5, 0, 7, tzinfo=UTC)
    assert str(formatting.when(at)) == (
        '<time datetime="2026-11-18T05:00:07.000+00:00">2026-11-18 05:00:07 UTC</time>'
    )
    assert ">now<" in formatting.ago(datetime.now(UTC))
    assert "2 h ago" in formatting.ago(datetime.now(UTC) - timedelta(hours=2, minutes=3))
    assert "in 3 d" in formatting.ago(datetime.now(UTC) + timedelta(days=3, hours=1))


def test_charts_escape_their_labels() -> None:
    drawn = charts.columns([Column("<script>", (("completed", 3),))], title='"><script>')
    assert "<script>" not in drawn
    assert charts.columns([], title="none").startswith("<svg")


def test_diffs_mark_words_and_escape_them() -> None:
    rows = diffs.diff_rows("a\nthe old <b>line\nz", "a\nthe new <b>line\nz\nlast")
    assert [row.kind for row in rows] == ["same", "changed", "same", "added"]
    assert rows[1].old == "the <del>old</del> &lt;b&gt;line"
    assert rows[1].new == "the <ins>new</ins> &lt;b&gt;line"
    assert diffs.diff_rows("same", "same") == []


def test_highlights_are_escaped() -> None:
    assert highlighted("<i>a b", [(3, 4)]) == "&lt;i&gt;<mark>a</mark> b"


def test_only_own_paths_are_followed() -> None:
    assert local_path("/jobs?x=1") == "/jobs?x=1"
    assert {local_path(p) for p in ("//a", "/\\a", "http://a", "", "/a\\b", "/a\nb")} == {"/"}


def test_pace_needs_two_fresh_pages() -> None:
    now = datetime.now(UTC)
    times = [now - timedelta(seconds=n) for n in (0, 10, 20, 30)]
    assert pages_per_minute(times, now) == pytest.approx(8)
    assert pages_per_minute(times[:1], now) is None
    assert pages_per_minute([now - timedelta(minutes=5)] * 2, now) is None
