"""A secret in any text field of any call or form is stored, shown, delivered and logged nowhere."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Project
from sessions.api.schema import EXAMPLES
from sessions.services.webhooks.subscriptions import webhook_create
from tests.api.client import Api
from tests.api.talk import answer, call, request, result
from tests.api.test_redaction import everything_stored
from tests.redaction.secrets import random_text

#: Calls that write, with the path of the example's request.
CALLS = {
    "sessions_create": ("POST", "sessions/"),
    "sessions_change": ("PATCH", "sessions/s1/"),
    "turns_push": ("POST", "sessions/s1/turns/"),
    "sessions_reconcile": ("POST", "sessions/s2/reconcile/"),
    "memory_patch": ("PATCH", "sessions/s1/memory/"),
    "memory_proposals_create": ("POST", "sessions/s1/memory/proposals/"),
    "memory_settings_change": ("PATCH", "memory/settings/"),
    "compact": ("POST", "sessions/s1/compact/"),
    "compactions_record": ("POST", "sessions/s1/compactions/"),
    "tool_calls": ("POST", "sessions/s1/tool_calls/"),
    "recap_edit": ("POST", "sessions/s1/compactions/1/recap/"),
    "prompts_compact": ("POST", "prompts/compact/"),
    "prompts_validate": ("POST", "prompts/validate/"),
    "replays_create": ("POST", "replays/"),
}
#: Calls that store no text of the caller, or only an address that is secret by design (of a webhook). The
#: OpenTelemetry endpoints accept protobuf; `tests/telemetry` covers them.
EXEMPT = {
    *("webhooks_create", "webhooks_change", "memory_facts_decide", "memory_offers_take", "memory_upkeep"),
    *("compactions_revert", "pins_put", "imports_change", "imports_create", "replays_change"),
    *("webhooks_test", "webhooks_redeliver", "otel_logs", "otel_metrics", "otel_traces"),
}
#: Examples in addition to those of the documentation: fields that they leave out.
MORE: dict[str, list[Any]] = {
    "sessions_create": [
        {"title": "A", "metadata": {"a": {"b": "c"}}, "policy": {"preset": "balanced", "name": "mine"}},
        {"policy": {"tools": [{"pattern": "read_*", "rule": "never"}]}},
        {"parent": "s1"},
    ],
    "sessions_change": [{"title": "A", "tags": ["b"], "policy": {"name": "mine"}}],
    "compact": [{"instructions": "a", "policy": {"name": "mine"}}],
    "memory_settings_change": [{"fields": [{"name": "ticket", "description": "The ticket"}]}],
    "replays_create": [
        {"newest": 1, "policies": ["off", {"name": "mine", "clip": 900}], "ratios": [0.5], "title": "A"}
    ],
}
FORMS = {
    "settings": {"name": "Alpha"},
    "settings_new": {"name": "Another"},
    "settings_members": {"email": "", "role": "viewer"},
    "settings_keys": {"name": "ci", "scopes": ["read"], "expires_in": ""},
    "settings_policy": {"preset": "masking", "tools": "read_*: never"},
    "settings_memory": {"own": "ticket: text"},
    "settings_prices": {"model": "a", "input": "1", "output": "1"},
    "settings_redaction": {"kind": "ticket", "pattern": "ACME"},
    "saved_view_create": {"name": "mine", "query": "agent=a"},
    "settings_budgets": {"period": "month", "limit": "5", "emails": "a@example.org"},
}


class Secrets:
    """A different secret for each place, so that a finding names the place."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def new(self, place: str) -> str:
        secret = "ghp_" + random_text(place, 36)
        self.places[secret] = place
        return secret

    def found_in(self, data: bytes) -> set[str]:
        return {place for secret, place in self.places.items() if secret.encode() in data}


def with_secrets(value: Any, place: str, secrets: Secrets) -> Iterator[Any]:
    """Yield copies of the value, each with a secret in another string."""
    for path in _string_paths(value):
        changed = copy.deepcopy(value)
        parent = changed
        for step in path[:-1]:
            parent = parent[step]
        secret = secrets.new(f"{place} {'.'.join(map(str, path))}")
        parent[path[-1]] = f"{parent[path[-1]]}{secret}"
        yield changed


def _string_paths(value: Any) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, str):
            yield (key,)
        yield from ((key, *rest) for rest in _string_paths(item))


def world(project: Project, api: Api) -> None:
    webhook_create(project=project, url="https://93.184.215.14/hook", events=["compaction.created"])
    api.post("sessions/", {"id": "s1", "format": "anthropic"})
    api.post("sessions/", {"id": "s2", "format": "anthropic"})
    messages = [
        request("a " * 50),
        call("t", a="b"),
        result("t", "line\n" * 3_000),
        answer(),
        request("more"),
        answer(),
    ]
    api.post("sessions/s1/turns/", {"messages": messages})
    api.post("sessions/s1/compact/")


def send_all(api: Api, client: Client, project: Project, secrets: Secrets) -> list[bytes]:
    answers = []
    for name, (method, path) in CALLS.items():
        shown = EXAMPLES.get(name, {}).get("request", {}).values()
        for body in [*shown, *MORE.get(name, [])]:
            for changed in with_secrets(body, name, secrets):
                if name == "sessions_create":
                    changed.setdefault("id", f"new-{len(answers)}")
                answers.append(api.call(method, path, changed).content)
    for name, form in FORMS.items():
        address = reverse(name, args=[project.slug])
        copies = with_secrets(form, f"form {name}", secrets)
        answers += [client.post(address, changed).content for changed in copies]
    return answers


@pytest.fixture
def admin(admin_api: Api) -> Api:
    return admin_api


@pytest.mark.slow
@pytest.mark.django_db
def test_a_secret_in_any_field_is_kept_nowhere(
    project: Project, admin: Api, owner_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    world(project, admin)
    secrets = Secrets()
    send_all(admin, owner_client, project, secrets)
    assert len(secrets.places) > 60
    pages = [
        owner_client.get(reverse(name, args=[project.slug])).content
        for name in ("sessions", "settings", "settings_keys", "settings_audit", "settings_memory", "replay")
    ]
    assert secrets.found_in(everything_stored()) == set()
    assert secrets.found_in(b"".join(pages)) == set()
    assert secrets.found_in(caplog.text.encode()) == set()


def test_every_call_that_writes_is_covered() -> None:
    schema = Client().get("/api/schema/", headers={"accept": "application/json"}).json()
    writing = {
        operation["operationId"]
        for methods in schema["paths"].values()
        for method, operation in methods.items()
        if method in ("post", "patch", "put")
    }
    assert writing - set(CALLS) - EXEMPT == set()
