"""Responses to HEAD requests, unsupported methods, unknown URLs and unknown fields."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import pytest
from django.test import Client

from tests.api.client import Api, code


def ask(url: str, method: str, key: str) -> HTTPResponse:
    connection = HTTPConnection(urlsplit(url).netloc)
    connection.request(method, "/api/v1/sessions/", headers={"Authorization": f"Bearer {key}"})
    return connection.getresponse()


@pytest.mark.django_db(transaction=True)
def test_head_has_the_headers_of_get_without_a_body(served_url: str, api_key: str) -> None:
    got, result = (ask(served_url, method, api_key) for method in ("GET", "HEAD"))
    assert (result.status, result.read()) == (200, b"")
    assert result.headers["Content-Length"] == str(len(got.read()))
    assert ask(served_url, "HEAD", "no key").status == 401


@pytest.mark.django_db
def test_an_unsupported_method_returns_the_allowed_ones(api: Api) -> None:
    answer = api.call("PUT", "sessions/", {})
    assert (answer.status_code, code(answer)) == (405, "method_not_allowed")
    assert answer["Allow"] == "GET, POST"


@pytest.mark.django_db
def test_too_many_query_parameters_are_rejected(api: Api) -> None:
    answer = api.get("sessions/?" + "&".join(f"a{number}=1" for number in range(1_001)))
    assert (answer.status_code, code(answer)) == (400, "unknown_field")


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_url_without_its_slash_is_named(api: Api, method: str) -> None:
    answer = api.call(method, "sessions/s/turns", None)
    assert (answer.status_code, code(answer)) == (404, "not_found")
    assert "/api/v1/sessions/s/turns/" in answer.json()["error"]["message"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["nothing", "nothing/", "/v1/messages"])
def test_an_unknown_url_refers_to_the_documentation(api: Api, path: str) -> None:
    answer = api.get(path)
    assert (answer.status_code, code(answer)) == (404, "not_found")
    assert "/api/docs/" in answer.json()["error"]["message"]


@pytest.mark.django_db
def test_the_error_for_a_gateway_url_names_the_separate_port(client: Client) -> None:
    answer = client.post("/gateway/anthropic/v1/messages", {}, content_type="application/json")
    assert (answer.status_code, code(answer)) == (404, "not_found")
    assert "port" in answer.json()["error"]["message"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "body", "unknown", "supported"),
    [
        ("sessions/", {"id": "s", "tag": ["a"]}, "tag", "`tags`"),
        ("sessions/", {"id": "s", "budget": {"tokens": 1}}, "budget.tokens", "`input_tokens`"),
        ("sessions/s/turns/", {"message": []}, "message", "`messages`"),
        ("sessions/s/reconcile/", {"messages": [], "history": []}, "history", "`compacted`"),
    ],
)
def test_an_unknown_field_is_named_with_those_that_exist(
    api: Api, path: str, body: dict[str, object], unknown: str, supported: str
) -> None:
    api.post("sessions/", {"id": "s", "if_exists": "return"})
    error = api.post(path, body).json()["error"]
    assert (error["code"], error["param"]) == ("unknown_field", unknown)
    assert supported in error["message"]


@pytest.mark.django_db
def test_a_number_in_place_of_an_object_is_rejected_with_the_fields_of_the_object(api: Api) -> None:
    error = api.post("sessions/", {"budget": 30_000}).json()["error"]
    assert (error["code"], error["param"]) == ("invalid_field", "budget")
    assert "`input_tokens`" in error["message"]


@pytest.mark.django_db
def test_an_invalid_setting_of_a_policy_is_named(api: Api) -> None:
    error = api.post("sessions/", {"policy": {"target": 7}}).json()["error"]
    assert (error["code"], error["param"]) == ("invalid_field", "policy.target")
    assert error["message"].startswith("`policy.target` must be between 0 and 1")
