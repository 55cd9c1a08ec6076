"""Whatever the OpenAPI document allows, and some of what it forbids: no answer breaks its schema,
and none is a server error but those by which Firecrawl's contract tells of a website's failure.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.specs.openapi.checks import response_schema_conformance

OF_THE_CONTRACT = ("SCRAPE_", "MAP_", "UNKNOWN_ERROR")


@pytest.fixture(scope="session")
def described(served_site: str) -> Any:
    schema = schemathesis.openapi.from_url(f"{served_site}/openapi.json")
    return schema.include(path_regex=r"^/(v1|v2)/|^/api/jobs/")


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_every_answer_fits_its_schema(case: Case) -> None:
    answer = case.call(timeout=60)
    if answer.status_code >= 500:
        code = answer.json().get("code", "")
        assert code.startswith(OF_THE_CONTRACT), answer.text
    case.validate_response(answer, checks=[response_schema_conformance])
