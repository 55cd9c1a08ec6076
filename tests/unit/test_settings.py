from ipaddress import ip_network

import pytest

from tests.support.settings import make_settings
from trapline.errors import SettingsError
from trapline.settings import Settings


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for group in Settings.groups().values():
        for field in group.model_fields:
            monkeypatch.delenv(group.variable(field), raising=False)


def test_defaults_need_no_environment() -> None:
    settings = Settings.load()
    assert settings.database.external_dsn() is None
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 3002)


def test_database_url_wins_over_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_HOST", "db.example")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:p@elsewhere/x")
    assert Settings.load().database.external_dsn() == "postgresql://u:p@elsewhere/x"


def test_database_url_from_parts_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_HOST", "db.example")
    monkeypatch.setenv("DB_USER", "a@b")
    monkeypatch.setenv("DB_PASSWORD", "p/w:d")
    monkeypatch.setenv("DB_SSLMODE", "require")
    assert (
        Settings.load().database.external_dsn()
        == "postgresql://a%40b:p%2Fw%3Ad@db.example:5432/trapline?sslmode=require"
    )
    monkeypatch.setenv("DB_NAME", "bees & wasps")
    dsn = Settings.load().database.external_dsn()
    assert dsn is not None
    assert dsn.partition("?")[0].endswith("/bees%20%26%20wasps")


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAPLINE_ALLOW_NETS", "127.0.0.0/8, ::1/128,")
    assert Settings.load().fetch.allow_nets == (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TRAPLINE_PORT", "seventy"),
        ("TRAPLINE_PORT", "70000"),
        ("DB_PORT", "0"),
        ("TRAPLINE_ALLOW_NETS", "10.0.0.0/40"),
        ("TRAPLINE_STATEMENT_TIMEOUT", "-1"),
        ("DB_SSLMODE", "perhaps"),
        ("TRAPLINE_LOG_LEVEL", "loud"),
    ],
)
def test_a_wrong_value_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match=variable):
        Settings.load()


def test_an_empty_variable_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "")
    monkeypatch.setenv("TRAPLINE_PORT", "")
    assert Settings.load().database.external_dsn() is None


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings.load().server.port = 1  # type: ignore[misc]


def test_secrets_do_not_show() -> None:
    settings = make_settings(database_url="postgresql://u:hunter2@h/d", admin_key="hunter2")
    assert "hunter2" not in repr(settings)
