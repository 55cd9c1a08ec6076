"""Whatever the OpenAPI document allows: no answer breaks its schema, and none is a server error but
those by which Firecrawl's contract tells of a website's failure.
"""

import time
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case
from schemathesis.specs.openapi.checks import response_schema_conformance

OF_THE_CONTRACT = ("SCRAPE_", "MAP_")
# Each operation gets at least the fewest, and as many more as fit into its seconds.
FEWEST, EXAMPLES, SECONDS_EACH = 5, 40, 0.6


def test_every_answer_fits_its_schema(served_site: str) -> None:
    schema = schemathesis.openapi.from_url(f"{served_site}/openapi.json")
    tried = 0
    for found in schema.include(path_regex=r"^/(v1|v2)/|^/api/jobs/").get_all_operations():
        _hold(found.ok())
        tried += 1
    assert tried > 40


def _hold(operation: Any) -> None:
    until, sent = time.monotonic() + SECONDS_EACH, 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def holds(case: Case) -> None:
        nonlocal sent
        sent += 1
        if sent > FEWEST and time.monotonic() > until:
            return
        answer = case.call(timeout=60)
        if answer.status_code >= 500:
            code = answer.json().get("code") or ""
            assert code.startswith(OF_THE_CONTRACT), (case.as_curl_command(), answer.text)
        case.validate_response(answer, checks=[response_schema_conformance])

    holds()
