"""Responses to HEAD requests and unsupported methods."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import pytest

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
