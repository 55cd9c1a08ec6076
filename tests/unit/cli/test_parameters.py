"""Wrong values are refused with a sentence that says what to write."""

import click
import pytest
from click.testing import CliRunner

from trapline.cli import cli
from trapline.cli.parameters import AtLeast, Language, Limit


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (AtLeast(0), "-1", "must be 0 or more, not -1"),
        (AtLeast(1), "x", "'x' is not a whole number"),
        (AtLeast(0, kind=float, above=True), "0", "must be more than 0, not 0"),
        (AtLeast(0, kind=float), "nan", "must be 0 or more"),
        (Language(), "123", "write it as en or de-AT"),
        (Limit(), "0", "must be 1 or more"),
    ],
)
def test_bad_values(kind: click.ParamType, value: str, message: str) -> None:
    with pytest.raises(click.BadParameter, match=message):
        kind.convert(value, None, None)


def test_good_values() -> None:
    assert AtLeast(1).convert("1", None, None) == 1
    assert AtLeast(0, kind=float, above=True).convert("0.5", None, None) == 0.5
    assert Language().convert("de-AT", None, None) == "de-AT"
    assert Limit().convert("none", None, None) == "none"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("crawl https://a.test --depth -1", "--depth': must be 0 or more"),
        ("crawl https://a.test --limit 0", "--limit': must be 1 or more"),
        ("scrape https://a.test --timeout 0", "--timeout': must be more than 0"),
        ("scrape https://a.test --language 123", "is not a language"),
        ("map https://a.test --limit none", "is not a whole number"),
        ("migrate down --to -3 --yes", "must be 0 or more"),
        ("db restore nope.dump", "does not exist"),
        ("search heron --lmit 3", "No such option"),
    ],
)
def test_commands_say_it_before_anything_is_started(
    line: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/none")
    result = CliRunner().invoke(cli, line.split())
    assert result.exit_code == 2, result.output
    assert message in result.output
