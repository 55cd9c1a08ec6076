import json
import logging
from uuid import UUID

import pytest

from trapline import logs
from trapline.settings import LogSettings

TRACE = UUID("0197c9e2-7b1f-7c9e-8d6c-2f6f3f6f1a11")


pytestmark = pytest.mark.usefixtures("own_logs")


def test_json_lines_carry_the_trace_id(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogSettings(format="json"))
    logs.bind_trace(TRACE)
    logs.get_logger("trapline.example").info("page stored", url="http://a/ü")
    line = json.loads(capsys.readouterr().err)
    assert line["event"] == "page stored"
    assert line["url"] == "http://a/ü"
    assert line["trace_id"] == str(TRACE)
    assert line["level"] == "info"


def test_lines_of_libraries_look_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogSettings(format="json"))
    logging.getLogger("some.library").warning("careful")
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["level"]) == ("careful", "warning")


def test_the_level_is_a_floor(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(LogSettings(format="json", level="error"))
    logs.get_logger("trapline.example").warning("not written")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", ["json", "console"])
def test_tracebacks_do_not_show_what_variables_hold(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure(LogSettings(format=form))
    try:
        _broken(1234 * 1000)
    except ValueError:
        logs.get_logger("trapline.example").exception("failed")
    line = capsys.readouterr().err
    assert "ValueError" in line
    assert "_broken" in line
    assert "1234000" not in line


def _broken(secret: int) -> None:
    raise ValueError(-secret % 7)
