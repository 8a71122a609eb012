"""Custom redaction patterns: saving, testing and applying them to pushes and imports."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from accounts.services.projects import project_update
from sessions.models import Message
from sessions.selectors.redaction import redaction_for
from tests.api.client import Api
from tests.pages.transcripts import make_session, message, turn

pytestmark = pytest.mark.django_db

TICKET = {"patterns": "ticket ACME-\\d+\nname user=(\\w+)"}


def address() -> str:
    return reverse("settings_redaction", args=["alpha"])


def test_owners_set_patterns(project, owner_client, member_client):
    assert owner_client.post(address(), TICKET).status_code == 302
    assert [pattern.kind for pattern in redaction_for(project.pk).patterns] == ["ticket", "name"]
    assert b"ACME-" in member_client.get(address()).content


def test_an_owner_does_not_replace_patterns_that_another_owner_saved_meanwhile(project, owner_client):
    version = owner_client.get(address()).context["form"]["version"].value()
    other = {"patterns": "order ORD-\\d+", "version": version}
    assert owner_client.post(address(), other).status_code == 302
    response = owner_client.post(address(), {**TICKET, "version": version})
    assert response.status_code == 422
    assert b"Another owner has changed the patterns" in response.content
    assert b"<code>ORD-" in response.content
    assert [pattern.kind for pattern in redaction_for(project.pk).patterns] == ["order"]
    form = response.context["form"]
    again = {name: form[name].value() for name in ("patterns", "version")}
    assert again["patterns"] == TICKET["patterns"]
    assert owner_client.post(address(), again).status_code == 302
    assert [pattern.kind for pattern in redaction_for(project.pk).patterns] == ["ticket", "name"]


def test_patterns_that_another_owner_saves_during_the_request_are_listed(project, owner_client, monkeypatch):
    def save_later(**arguments):
        monkeypatch.undo()
        Project.objects.update(redaction_patterns=[{"kind": "order", "pattern": "ORD-\\d+"}])
        project_update(**arguments)

    monkeypatch.setattr("sessions.pages.settings.redaction.project_update", save_later)
    response = owner_client.post(address(), TICKET)
    assert response.status_code == 422
    assert b"<code>ORD-" in response.content
    version = response.context["form"]["version"].value()
    assert owner_client.post(address(), {**TICKET, "version": version}).status_code == 302


@pytest.mark.parametrize(
    "patterns",
    ["ticket", "Ticket x", "ticket (?=x)", "ticket .*", "\n".join(f"k{n} x{n}" for n in range(21))],
)
def test_invalid_patterns_are_rejected(patterns, project, owner_client):
    assert owner_client.post(address(), {"patterns": patterns}).status_code == 422
    project.refresh_from_db()
    assert project.redaction_patterns == []


def test_testing_patterns_stores_nothing(project, owner_client):
    data = {**TICKET, "sample": "see ACME-42 of user=olga", "test": "1"}
    response = owner_client.post(address(), data)
    redacted = response.context["redacted"]
    assert redacted.startswith("see [redacted:ticket:")
    assert "olga" not in redacted
    project.refresh_from_db()
    assert project.redaction_patterns == []


def test_pushes_and_imports_are_redacted(project, owner_client):
    owner_client.post(address(), TICKET)
    api = Api(api_key_create(project=project, name="k")[1])
    api.post("sessions/", {"id": "s", "title": "about ACME-7"})
    api.post("sessions/s/turns/", {"messages": [{"role": "user", "content": "close ACME-7"}]})
    stored = api.get("sessions/s/").json()
    assert "ACME-7" not in stored["title"]
    project.refresh_from_db()
    imported = make_session(project, [turn(0, [message("user", "close ACME-7", "u0")])], name="imported")
    turns = api.get("sessions/s/turns/").content + api.get(f"sessions/{imported.pk}/turns/").content
    assert Message.objects.count() == 2
    assert turns.count(b"[redacted:ticket:") == 2
    assert b"ACME-7" not in turns
