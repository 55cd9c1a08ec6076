"""What a visit says of its end."""

import pytest

from trapline.errors import ExitCode, VisitFailed
from trapline.model import Fetched
from trapline.pipeline.crawl.visit_result import detail


@pytest.mark.parametrize("said", [None, "0.99 s", "reset (104)", "reset (104) by peer"])
def test_a_reason_is_told_once(said: str | None) -> None:
    failed = VisitFailed(ExitCode.TOTAL_TIMEOUT, said)
    fetched = Fetched(exit_code=failed.code, message=failed.message, url="http://a.test/")
    assert detail(fetched) == said
    assert VisitFailed(failed.code, detail(fetched)).message == failed.message


def test_what_is_said_in_other_words_is_all_told() -> None:
    fetched = Fetched(exit_code=ExitCode.TOTAL_TIMEOUT, message="Too late.", url="http://a.test/")
    assert detail(fetched) == "Too late."
