"""Keys of other projects get 404 at every URL. The URLs come from the URL configuration, so that new ones are
included.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import chain
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from compaction.policy import get_policy
from compaction.replay.setting import Limit
from replay.models import ReplayRun
from replay.services.runs import run_create
from sessions.api.endpoint import Endpoint
from sessions.models import AgentSession, ImportJob, SharedFact, Webhook, WebhookDelivery
from sessions.services.imports.jobs import import_job_create
from sessions.services.webhooks.subscriptions import webhook_create, webhook_test
from tests.api.client import Api, code
from tests.api.talk import output, push, request, whole_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

SECRET_WORD = "xylophone"

#: URLs of the API without authentication: the schema and its documentation.
PUBLIC = {"api-schema", "api-docs", "schema", "docs", "swagger", "redoc"}

#: A valid body for each call. Calls that are not listed are made without a body.
BODIES: dict[str, Any] = {
    "import": {"state": "cancelled"},
    "turns": {"messages": [request()]},
    "tool_calls": {"name": "search_history", "arguments": {"query": SECRET_WORD}},
    "compactions": {"before": 1, "content": [{"type": "compaction", "content": "A summary."}]},
    "memory": {"task": "x"},
    "memory-proposals": {},
    "memory-offers": {},
}


def patterns(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from patterns(pattern, route)
        elif route.startswith("api/"):
            yield route, pattern


def methods(pattern: URLPattern) -> list[str]:
    view = getattr(pattern.callback, "view_class", None) or getattr(pattern.callback, "cls", None)
    return [name.upper() for name in ("get", "post", "put", "patch", "delete") if hasattr(view, name)]


CALLS = [
    pytest.param(method, pattern, id=f"{method} {route}")
    for route, pattern in patterns(get_resolver())
    for method in methods(pattern)
    if pattern.name not in PUBLIC
]
WITH_IDS = [param for param in CALLS if param.values[1].pattern.converters]


@reused
def ids(api: Api) -> dict[str, Any]:
    """Return an object of another project for each URL parameter. Add one here for a new parameter."""
    made = api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 3_000}, "title": SECRET_WORD}).json()
    for number in range(6):
        push(api, whole_turn(number))
    push(api, [request(f"{SECRET_WORD} {output(9)}")])
    edits = api.get("sessions/s1/compactions/1/").json()["edits"]
    api.patch("sessions/s1/memory/", {"task": SECRET_WORD}, if_match='"0"')
    handle = next(edit["handle"] for edit in edits if edit["handle"])
    return {
        "session_id": made["id"],
        "external": "s1",
        "handle": handle,
        "number": 1,
        "position": 0,
        **_webhook(made["id"]),
        "replay_id": str(_replay(made["id"]).pk),
        "import_id": str(_import(made["id"]).pk),
        "fact_id": str(_fact(made["id"]).pk),
    }


def _webhook(session_id: str) -> dict[str, str]:
    """Return the ids of a webhook and of a delivery that is not sent yet."""
    session = AgentSession.objects.select_related("project").get(pk=session_id)
    url = "https://93.184.215.14/"
    webhook = webhook_create(project=session.project, url=url, events=["compaction.started"])
    return {"webhook_id": str(webhook.pk), "delivery_id": str(webhook_test(webhook=webhook).pk)}


def _fact(session_id: str) -> SharedFact:
    session = AgentSession.objects.get(pk=session_id)
    found: SharedFact = SharedFact.objects.create(
        project_id=session.project_id, session=session, field="next", text=SECRET_WORD, digest=b"x"
    )
    return found


def _import(session_id: str) -> ImportJob:
    """Return an import that no worker has started."""
    session = AgentSession.objects.select_related("project").get(pk=session_id)
    return import_job_create(project=session.project, name="log.json", file=io.BytesIO(b"{}"))


def _replay(session_id: str) -> ReplayRun:
    """Return a replay of the session that no worker has started."""
    session = AgentSession.objects.select_related("project").get(pk=session_id)
    return run_create(
        project=session.project, sessions=[session], policies=[get_policy("off")], limits=[Limit(ratio=1.0)]
    )


def address_of(pattern: URLPattern, ids: dict[str, Any]) -> str:
    kwargs = {name: ids[name] for name in pattern.pattern.converters}
    view = getattr(pattern.callback, "view_class", None)
    namespace = "replay-api" if view is not None and view.__module__.startswith("replay") else "api"
    return reverse(f"{namespace}:{pattern.name}", kwargs=kwargs)


def row_state() -> list[Any]:
    models = (AgentSession, Webhook, WebhookDelivery, SharedFact, ImportJob, ReplayRun)
    return [*chain.from_iterable(model.objects.order_by("pk").values() for model in models)]


def test_there_are_endpoints_to_test() -> None:
    assert len(WITH_IDS) >= 15
    for param in CALLS:
        view = getattr(param.values[1].callback, "view_class", None) or param.values[1].callback.cls
        assert issubclass(view, Endpoint), f"{param.id} is not dispatched by Endpoint"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scopes"), [("session_id", ["push", "read"]), ("external", ["push", "read", "admin"])]
)
def test_an_id_of_another_project_is_not_found(
    other_project: Project, ids: dict[str, Any], name: str, scopes: list[str], subtests: pytest.Subtests
) -> None:
    stranger = Api(api_key_create(project=other_project, name="theirs", scopes=scopes)[1])
    before = row_state()
    for param in WITH_IDS:
        with subtests.test(param.id):
            method, pattern = param.values
            response = call(stranger, method, pattern, {**ids, "session_id": ids[name]})
            # Only keys with the required scope learn whether an object exists.
            expected = 404 if pattern.callback.view_class.scopes[method] in scopes else 403
            assert response.status_code == expected, response.content
            assert SECRET_WORD.encode() not in response.content
            assert row_state() == before


@pytest.mark.slow
def test_an_unknown_id_gets_the_same_response(
    stranger_api: Api, ids: dict[str, Any], subtests: pytest.Subtests
) -> None:
    nobodys = str(uuid4())
    for param in WITH_IDS:
        with subtests.test(param.id):
            known, unknown = (
                call(stranger_api, *param.values, {**ids, "session_id": id}).content.decode()
                for id in (ids["session_id"], nobodys)
            )
            assert known.replace(ids["session_id"], "·") == unknown.replace(nobodys, "·")


def call(api: Api, method: str, pattern: URLPattern, ids: dict[str, Any]) -> Any:
    if_match = {"if_match": "*"} if method == "PATCH" else {}
    body = None if method == "GET" else BODIES.get(pattern.name)
    return api.call(method, address_of(pattern, ids), body, **if_match)


@pytest.mark.slow
def test_every_endpoint_requires_a_key(ids: dict[str, Any], subtests: pytest.Subtests) -> None:
    for param in CALLS:
        method, pattern = param.values
        for headers in ({}, {"authorization": "Bearer ctx_12345678_nothing"}):
            with subtests.test(param.id, headers=headers):
                response = Client().generic(
                    method,
                    address_of(pattern, ids),
                    data=b"{}",
                    content_type="application/json",
                    headers=headers,
                )
                assert (response.status_code, code(response)) == (401, "not_authenticated")


@pytest.mark.slow
@pytest.mark.parametrize(("method", "pattern"), CALLS)
def test_the_projects_own_objects_are_found(
    project: Any, api: Api, ids: dict[str, Any], method: str, pattern: URLPattern
) -> None:
    """Counter-check: the objects of the tests above exist."""
    response = call(api, method, pattern, ids)
    assert response.status_code not in {401, 404, 500}, response.content


def test_lists_of_another_project_are_empty(stranger_api: Api, ids: dict[str, Any]) -> None:
    for address in ("sessions/", f"sessions/?q={SECRET_WORD}"):
        assert stranger_api.get(address).json()["data"] == []


def test_a_cached_session_of_another_project_is_not_found(
    api: Api, ids: dict[str, Any], other_project: Project
) -> None:
    """Statements check the project themselves, so that a wrong cache entry cannot leak data."""
    push(api, [request()])
    assert api.get("sessions/s1/prompt/").status_code == 200
    AgentSession.objects.update(project=other_project)
    for method, address in (
        ("GET", "prompt/"),
        ("GET", "turns/"),
        ("POST", "turns/"),
        ("POST", "reconcile/"),
    ):
        response = api.call(method, f"sessions/s1/{address}", None if method == "GET" else BODIES["turns"])
        assert response.status_code == 404, address
