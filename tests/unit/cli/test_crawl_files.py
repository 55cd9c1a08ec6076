"""Output files are checked before the work, belong to the crawl's job, and have predictable names."""

from pathlib import Path

import pytest

from trapline.cli.crawl_files import CrawlFiles
from trapline.cli.page_files import check_writable, open_output
from trapline.errors import InvalidInput
from trapline.pipeline.reports.page_export import file_name


def test_files_belong_to_the_job() -> None:
    given = CrawlFiles(out=Path("/data/pages"), jsonl=Path("/data/pages.jsonl"))
    assert CrawlFiles.of_job(given.metadata()) == given
    assert CrawlFiles().metadata() == {}
    assert CrawlFiles.of_job({}) == CrawlFiles()
    assert not CrawlFiles()
    other = CrawlFiles(jsonl=Path("/data/other.jsonl"))
    assert other.or_else(given) == CrawlFiles(out=given.out, jsonl=other.jsonl)


def test_relative_paths_are_kept_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    metadata = CrawlFiles(out=Path("pages")).metadata()
    assert CrawlFiles.of_job(metadata).out == tmp_path / "pages"


@pytest.mark.parametrize(
    ("name", "folder", "reason"),
    [
        ("file", True, "File exists"),
        ("file/below", True, "Not a directory"),
        (".", False, "it is a folder"),
        ("nowhere/pages.jsonl", False, "there is no folder"),
    ],
)
def test_what_cannot_be_written_is_refused_with_the_reason(
    tmp_path: Path, name: str, folder: bool, reason: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=f"Cannot write .*{reason}"):
        check_writable(tmp_path / name, folder=folder)


def test_good_places_pass_and_nothing_is_written(tmp_path: Path) -> None:
    CrawlFiles(tmp_path / "a" / "b", tmp_path / "x.jsonl", tmp_path / "x.warc.gz").check()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_a_file_is_complete_or_not_there(tmp_path: Path) -> None:
    file = tmp_path / "pages.csv"
    with pytest.raises(TypeError), open_output(file) as out:
        out.writelines([b"half", None])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []
    with open_output(file) as out:
        out.write(b"whole")
    assert file.read_bytes() == b"whole"


def test_a_dash_is_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with open_output(Path("-")) as out:
        out.write(b"x")
    assert capfdbinary.readouterr().out == b"x"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://a.test", "a.test/index.md"),
        ("https://a.test/", "a.test/index.md"),
        ("https://a.test/docs/", "a.test/docs/index.md"),
        ("https://a.test/docs/intro", "a.test/docs/intro.md"),
        ("https://a.test/docs/intro.html", "a.test/docs/intro.html.md"),
        ("https://a.test:8080/x", "a.test-8080/x.md"),
    ],
)
def test_file_names_follow_the_url(url: str, name: str) -> None:
    assert file_name(url) == Path(name)


def test_urls_that_would_share_a_name_get_a_hash() -> None:
    urls = [
        "https://a.test/x", "https://a.test/x?a=1", "https://a.test/x?a=2", "https://a.test/x%20y",
        "https://a.test/x-20y", "https://a.test/", "https://a.test/index", "https://a.test//x",
        "https://a.test/../x", f"https://a.test/{'x' * 90}", f"https://a.test/{'x' * 91}",
    ]  # fmt: skip
    names = [file_name(url) for url in urls]
    assert len(set(names)) == len(urls)
    assert all(".." not in name.parts and not name.is_absolute() for name in names)
