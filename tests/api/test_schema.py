"""The OpenAPI description and the browsable documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator
from playwright.sync_api import Page, expect

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from sessions.api.endpoint import Endpoint
from tests.api.client import Api
from tests.api.patterns import API_PATTERNS

#: The paths of OpenTelemetry's protocol, whose errors have another shape.
OTLP = {"/otel/v1/logs", "/otel/v1/traces", "/otel/v1/metrics"}


@pytest.fixture(scope="module")
def schema() -> Any:
    return Client().get("/api/schema/", headers={"accept": "application/json"}).json()


def operations(schema: Any, under: str = "/") -> Iterator[tuple[str, str, Any]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if path.startswith(under):
                yield path, method, operation


@pytest.mark.slow
def test_the_schema_is_valid_without_warnings(tmp_path: Any) -> None:
    call_command("spectacular", "--fail-on-warn", "--validate", "--file", str(tmp_path / "schema.yml"))


def test_every_endpoint_is_documented(schema: Any) -> None:
    addressed = set()
    for route, view in _endpoints():
        addressed |= {(route, method.lower()) for method in view.scopes if hasattr(view, method.lower())}
    described = {(path, method) for path, method, _ in operations(schema)}
    assert len(described) == len(addressed) + len(OTLP)
    assert {path for path, _ in described} >= OTLP


def _endpoints() -> Iterator[tuple[str, type[Endpoint]]]:
    for pattern in API_PATTERNS:
        yield str(pattern.pattern), pattern.callback.view_class  # type: ignore[union-attr]


@pytest.mark.django_db
@pytest.mark.parametrize(("path", "name"), [("turns", "TurnPush"), ("reconcile", "HistorySent")])
def test_null_in_a_reported_call_means_that_the_field_is_missing(
    api: Api, schema: Any, path: str, name: str
) -> None:
    described = schema["components"]["schemas"][name]["properties"]
    nullable = {field: None for field, each in described.items() if each.get("nullable")}
    assert nullable.keys() >= {"usage", "latency", "model", "request_id", "response_id"}
    api.post("sessions/", {"id": "s1"})
    body = {"messages": [{"role": "user", "content": "Hello."}], **nullable}
    assert api.post(f"sessions/s1/{path}/", body).status_code in {200, 201}


def test_every_endpoint_has_summary_description_tag_and_scope(schema: Any) -> None:
    for path, method, operation in operations(schema):
        assert operation["summary"], (path, method)
        assert operation["tags"], (path, method)
        description, _, scope = operation["description"].rpartition("\n\n")
        assert description not in ("", Endpoint.__doc__), (path, method)
        assert "scope" in scope, (path, method)


def test_every_endpoint_has_request_and_response_examples(schema: Any) -> None:
    missing = [
        f"{method} {path}" for path, method, operation in operations(schema) if not _has_examples(operation)
    ]
    assert missing == []


def _has_examples(operation: Any) -> bool:
    bodies = operation.get("requestBody", {}).get("content", {})
    json_body = bodies.get("application/json")
    has_request_example = json_body is None or "examples" in json_body
    answers = [answer for status, answer in operation["responses"].items() if status in {"200", "201"}]
    shown = [content for answer in answers for content in answer.get("content", {}).values()]
    return has_request_example and (not shown or any("examples" in content for content in shown))


def test_every_example_matches_its_schema(schema: Any) -> None:
    wrong = {
        f"{operation['operationId']}{place}"
        for _, _, operation in operations(schema)
        for answer in operation["responses"].values()
        for content in answer.get("content", {}).values()
        for example in content.get("examples", {}).values()
        for place in _misfits(example["value"], content["schema"], schema)
    }
    assert wrong == set()


@pytest.mark.slow
def test_an_empty_string_is_valid_where_the_api_accepts_it(schema: Any) -> None:
    shapes = schema["components"]["schemas"]
    titles = [shapes[name]["properties"]["title"] for name in ("SessionCreate", "SessionChange")]
    assert [Draft202012Validator(title).is_valid("") for title in titles] == [True, True]


def _misfits(value: Any, shape: Any, schema: Any, place: str = "") -> Iterator[str]:
    """Return the fields that an object lacks, and those that its schema does not contain."""
    if "$ref" in shape:
        shape = schema["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        for item in value:
            yield from _misfits(item, shape.get("items", {}), schema, f"{place}[]")
    elif isinstance(value, dict) and (known := shape.get("properties")):
        yield from (
            f"{place}.{name}" for name in {*shape.get("required", ())} - {*value} | {*value} - {*known}
        )
        for name in known.keys() & value.keys():
            yield from _misfits(value[name], known[name], schema, f"{place}.{name}")


def test_tags_begin_with_sessions_and_are_complete(schema: Any) -> None:
    listed = [tag["name"] for tag in schema["tags"]]
    assert listed[:2] == ["Sessions", "Turns and prompts"]
    assert set(listed) == {tag for _, _, operation in operations(schema) for tag in operation["tags"]}


@pytest.mark.slow
@pytest.mark.django_db
def test_every_endpoint_rejects_unknown_parameters(schema: Any, project: Project) -> None:
    """A misspelled filter would otherwise return everything."""
    api = Api(api_key_create(project=project, name="all", scopes=["push", "read", "admin"])[1])
    for path, method, _ in operations(schema, under="/api/v1/"):
        address = re.sub(r"{(\w+)}", "1", path)
        refused = api.call(method.upper(), f"{address}?limits=1")
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["param"]) == (400, "unknown_field", "limits"), path


def test_operations_with_a_body_document_its_errors(schema: Any) -> None:
    for path, method, operation in operations(schema, under="/api/v1/"):
        if "requestBody" in operation:
            assert operation["responses"].keys() >= {"408", "413", "415"}, (path, method)


def test_an_upload_is_described_as_a_file(schema: Any) -> None:
    upload = schema["components"]["schemas"]["ImportUpload"]["properties"]["file"]
    assert (upload["type"], upload["format"]) == ("string", "binary")


def test_every_endpoint_requires_a_bearer_key(schema: Any) -> None:
    assert schema["components"]["securitySchemes"]["apiKey"]["scheme"] == "bearer"
    for path, method, operation in operations(schema):
        assert operation["security"] == [{"apiKey": []}], (path, method)


def test_every_error_has_the_same_shape(schema: Any) -> None:
    for path, _, operation in operations(schema):
        shape = "OtlpStatus" if path in OTLP else "Error"
        for status, answer in operation["responses"].items():
            if status >= "400":
                assert answer["content"]["application/json"]["schema"]["$ref"].endswith(f"/{shape}")


@pytest.mark.slow
def test_schema_and_documentation_need_no_login(client: Client) -> None:
    assert client.get("/api/schema/").status_code == 200
    assert client.get("/api/docs/").status_code == 200


@pytest.mark.slow
def test_each_process_generates_the_schema_once_whatever_the_parameters(
    client: Client, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    first = client.get("/api/schema/")
    monkeypatch.delattr(SchemaGenerator, "get_schema")
    for parameters in ("", "?version=1", "?version=%0a", "?lang=de", "?version=%00&lang=%0a"):
        with subtests.test(parameters):
            answer = client.get(f"/api/schema/{parameters}")
            assert (answer.status_code, answer.content) == (200, first.content)


@pytest.mark.browser
def test_the_documentation_page_works_under_the_content_policy(page: Page) -> None:
    page.goto("/api/docs/")
    expect(page.get_by_text("Push a turn")).to_be_visible(timeout=30_000)
