from trapline.errors import OUTCOMES, Category, ExitCode, NotFound, Retry, VisitFailed


def test_every_exit_code_has_one_row_with_a_sentence() -> None:
    assert set(OUTCOMES) == set(ExitCode)
    for code, outcome in OUTCOMES.items():
        assert outcome.code is code
        assert outcome.sentence.endswith(".")


def test_what_has_content_is_never_tried_again() -> None:
    contentful = [o for o in OUTCOMES.values() if o.category is Category.CONTENTFUL]
    assert {o.code for o in contentful} == {
        ExitCode.CONTENT,
        ExitCode.NOT_MODIFIED,
        ExitCode.FROM_DUMP,
    }
    assert all(o.retry is Retry.NEVER for o in contentful)


def test_an_errors_default_message_is_its_docstring() -> None:
    assert NotFound().message == "Nothing with that name exists here."
    assert NotFound("No such job.").message == "No such job."


def test_a_failed_visit_says_what_happened_and_keeps_the_hint() -> None:
    error = VisitFailed(ExitCode.RATE_LIMITED, "Retry-After: 7", retry_after=7)
    assert error.message == "The server asks for fewer requests (429). (Retry-After: 7)"
    assert error.outcome.retry is Retry.AFTER_HINT
    assert error.retry_after == 7
