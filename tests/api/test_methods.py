"""What an address answers to another method than that it is made for."""

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
def test_head_tells_what_get_would_and_sends_no_body(served_url: str, api_key: str) -> None:
    got, told = (ask(served_url, method, api_key) for method in ("GET", "HEAD"))
    assert (told.status, told.read()) == (200, b"")
    assert told.headers["Content-Length"] == str(len(got.read()))
    assert ask(served_url, "HEAD", "no key").status == 401


@pytest.mark.django_db
def test_a_method_that_an_address_does_not_take_is_told_those_it_takes(api: Api) -> None:
    answer = api.call("PUT", "sessions/", {})
    assert (answer.status_code, code(answer)) == (405, "method_not_allowed")
    assert answer["Allow"] == "GET, POST"
