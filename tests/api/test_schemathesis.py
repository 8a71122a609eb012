"""Every endpoint with valid and invalid generated data: no server errors, and only responses that the schema
describes.

CONTEXTAPP_SCHEMATHESIS is the number of examples for each call and kind of data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from tests.api.client import Api
from tests.api.patterns import API_PATTERNS
from tests.api.talk import push, whole_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

EXAMPLES = int(os.environ.get("CONTEXTAPP_SCHEMATHESIS", "3"))

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "ignored_auth",
    "unsupported_method",
    "negative_data_rejection",
    "positive_data_acceptance",
]
#: The paths as the schema names them.
PATHS = sorted(
    {"/api/v1/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(each.pattern)) for each in API_PATTERNS}
)


#: Checks of sequences of calls: also, created objects are found, and deleted ones are not.
SEQUENCE_CHECKS = [
    *(check for check in CHECKS if check != "ignored_auth"),
    "use_after_free",
    "ensure_resource_availability",
]


@cache
def schema() -> Any:
    import schemathesis  # takes a second
    from schemathesis.config import SchemathesisConfig

    config = SchemathesisConfig.from_path(Path(__file__).with_name("schemathesis.toml"))
    loaded = schemathesis.openapi.from_dict(
        SchemaGenerator().get_schema(request=None, public=True), config=config
    )
    loaded.app = get_wsgi_application()
    return loaded


@cache
def operations() -> list[Any]:
    return [result.ok() for result in schema().get_all_operations()]


@contextmanager
def one_connection() -> Iterator[None]:
    """Run the calls within the test's transaction, like those of Django's test client."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@reused
def known(project: Project) -> dict[str, Any]:
    """Return a key with all scopes, and an existing object for each URL parameter."""
    key = api_key_create(project=project, name="fuzz", scopes=["push", "read", "admin"])[1]
    api = Api(key)
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 6_000}, "policy": "masking"})
    for number in range(8):
        push(api, whole_turn(number, lines=60))
    api.patch("sessions/s1/memory/", {"task": "x"}, if_match='"0"')
    edits = api.get("sessions/s1/compactions/1/").json()["edits"]
    handle = next(edit["handle"] for edit in edits if edit["handle"])
    return {"key": key, "session_id": "s1", "number": 1, "handle": handle}


@pytest.mark.slow
def test_the_paths_are_those_of_the_schema() -> None:
    """OpenTelemetry has a separate specification."""
    found = {operation.path for operation in operations()}
    assert {path for path in found if not path.startswith("/otel/")} == set(PATHS)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("path", PATHS)
def test_responses_match_the_schema(path: str, mode: str, known: dict[str, Any]) -> None:
    for operation in operations():
        if operation.path == path:
            ask(operation, mode, known)


@pytest.mark.slow
def test_sequences_of_calls_match_the_schema(known: dict[str, Any]) -> None:
    """Later calls use ids from the responses of earlier ones, as schemathesis infers from the schema."""
    from schemathesis.checks import CHECKS as ALL

    machine = schema().as_state_machine()
    checks = ALL.get_by_names(SEQUENCE_CHECKS)

    class Sequence(machine):  # type: ignore[misc]
        def setup(self) -> None:
            self.savepoint = transaction.savepoint()

        def teardown(self) -> None:
            transaction.savepoint_rollback(self.savepoint)

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": {"Authorization": f"Bearer {known['key']}"}}

        def validate_response(self, response: Any, case: Any, **options: Any) -> None:
            case.validate_response(response, checks=checks, transport_kwargs=options, recorder=self.recorder)

    few = settings(
        max_examples=4,
        stateful_step_count=12,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with one_connection():
        for _ in range(EXAMPLES):  # Hypothesis requires equal sequences to be equal in one run; ids are not
            Sequence.run(settings=few)


def ask(operation: Any, mode: str, known: dict[str, Any]) -> None:
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS as ALL

    checks = ALL.get_by_names(CHECKS)
    headers = {"Authorization": f"Bearer {known['key']}"}

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)), there=st.booleans())
    def call(case: Any, there: bool) -> None:
        if there and operation.method != "delete":
            case.path_parameters |= {name: known[name] for name in case.path_parameters if name in known}
        case.call_and_validate(headers=headers, checks=checks)

    with one_connection():
        call()
