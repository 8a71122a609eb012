"""Pages run every hook of the page middleware; the API skips the whole middleware."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.template.response import SimpleTemplateResponse
from django.test import Client
from django.urls import path

CALLS: list[str] = []


class Recorder:
    name = "outer"

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        CALLS.append(f"{self.name} request")
        response = self.get_response(request)
        CALLS.append(f"{self.name} response {response.status_code}")
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        CALLS.append(f"{self.name} view")

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        CALLS.append(f"{self.name} exception")
        return HttpResponse(status=418) if isinstance(exception, LookupError) else None

    def process_template_response(self, request: HttpRequest, response: Any) -> Any:
        CALLS.append(f"{self.name} template")
        return response


class InnerRecorder(Recorder):
    name = "inner"


class Failing(Recorder):
    def __call__(self, request: HttpRequest) -> Any:
        raise ValueError


def plain(request: HttpRequest) -> SimpleTemplateResponse:
    return SimpleTemplateResponse("registration/logged_out.html")


def failing(request: HttpRequest) -> HttpResponse:
    raise LookupError


urlpatterns = [path("plain/", plain), path("failing/", failing), path("api/v1/failing/", failing)]


@pytest.fixture
def client(settings: Any) -> Client:
    CALLS.clear()
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = ["contextapp.middleware.PageMiddleware"]
    settings.PAGE_MIDDLEWARE = [f"{__name__}.Recorder", f"{__name__}.InnerRecorder"]
    return Client(raise_request_exception=False)


def test_the_hooks_run_in_the_order_of_django(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimpleTemplateResponse, "rendered_content", "x")
    assert client.get("/plain/").status_code == 200
    assert [
        *("outer request", "inner request", "outer view", "inner view"),
        *("inner template", "outer template", "inner response 200", "outer response 200"),
    ] == CALLS


def test_a_layer_can_handle_an_exception_of_the_view(client: Client) -> None:
    assert client.get("/failing/").status_code == 418
    assert CALLS[4:] == ["inner exception", "inner response 418", "outer response 418"]


def test_the_layers_around_a_failing_layer_see_its_response(client: Client, settings: Any) -> None:
    settings.PAGE_MIDDLEWARE = [f"{__name__}.Recorder", f"{__name__}.Failing"]
    assert client.get("/plain/").status_code == 500
    assert CALLS == ["outer request", "outer response 500"]


def test_the_api_skips_all_hooks(client: Client) -> None:
    assert client.get("/api/v1/failing/").status_code == 500
    assert CALLS == []
