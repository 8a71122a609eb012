"""The pages of errors that no view handles."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import InterfaceError, InternalError, OperationalError
from django.http import HttpRequest
from django.test import Client
from django.urls import path
from psycopg.errors import ReadOnlySqlTransaction

from compaction.deadline import OutOfTime
from contextapp import urls

ERRORS = {"connection": OperationalError, "cursor": InterfaceError, "deadline": OutOfTime, "bug": ValueError}


def failing(request: HttpRequest, error: str) -> Any:
    if error == "read-only":
        raise InternalError from ReadOnlySqlTransaction()
    raise ERRORS[error]


handler500 = urls.handler500
urlpatterns = [path("failing/<str:error>/", failing)]


@pytest.fixture
def client(settings: Any) -> Client:
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = []
    return Client(raise_request_exception=False)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_page_of_an_error_has_the_chosen_theme(client: Client, theme: str) -> None:
    client.cookies["theme"] = theme
    for error in ("bug", "connection"):
        assert f'data-theme="{theme}"' in client.get(f"/failing/{error}/").text


@pytest.mark.parametrize("error", ["connection", "cursor", "deadline", "read-only"])
def test_a_database_that_does_not_respond_is_temporary(client: Client, error: str) -> None:
    response = client.get(f"/failing/{error}/")
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert "Try again" in response.content.decode()


def test_any_other_error_is_an_internal_one(client: Client) -> None:
    response = client.get("/failing/bug/")
    assert response.status_code == 500
    assert "Retry-After" not in response.headers
    assert "Something went wrong" in response.content.decode()
