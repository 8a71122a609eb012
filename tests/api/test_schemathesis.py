"""Every endpoint with valid and invalid generated data: no server errors, and only responses that the schema
describes.

CONTEXTAPP_SCHEMATHESIS is the number of examples for each call and kind of data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from accounts.models import Project
from accounts.services import api_key_create
from tests.api.client import Api
from tests.api.talk import push, whole_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

EXAMPLES = int(os.environ.get("CONTEXTAPP_SCHEMATHESIS", "4"))

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    ignored_auth,
    unsupported_method,
    negative_data_rejection,
    positive_data_acceptance,
]

CONFIG = SchemathesisConfig.from_path(Path(__file__).with_name("schemathesis.toml"))
SCHEMA = schemathesis.openapi.from_dict(
    SchemaGenerator().get_schema(request=None, public=True), config=CONFIG
)
SCHEMA.app = get_wsgi_application()
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]


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
@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_responses_match_the_schema(operation: Any, mode: GenerationMode, known: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {known['key']}"}

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode), there=st.booleans())
    def ask(case: Any, there: bool) -> None:
        if there and operation.method != "delete":
            case.path_parameters |= {name: known[name] for name in case.path_parameters if name in known}
        case.call_and_validate(headers=headers, checks=CHECKS)

    with one_connection():
        ask()
