"""Deleting a session: its own data is deleted, shared data stays, and the audit log records who did it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.test import Client
from django.utils import timezone

from accounts.models import ApiKey, AuditEvent, Project
from accounts.services import api_key_create
from sessions.models import AgentSession, Blob, Message
from sessions.services.search.indexing import search_index_run
from sessions.services.sessions.lifecycle import session_delete
from sessions.services.sessions.retention import retention_run, retention_set
from tests.api.client import Api
from tests.api.talk import answer, output, prompt, push, request, whole_turn
from tests.api.test_redaction import everything_stored
from tests.plugins.reused import reused

GIANT = output(0, 2_000)
OTHER_GIANT = output(1, 2_000)


@reused
def admin_api(project: Project) -> Api:
    return Api(api_key_create(project=project, name="admin", scopes=["admin", "push", "read"])[1])


def test_everything_is_deleted(admin_api: Api) -> None:
    made = admin_api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 2_500}, "system": "x"}).json()
    for number in range(8):
        push(admin_api, whole_turn(number))
    admin_api.patch("sessions/s1/memory/", {"task": "x"}, if_match='"0"')
    push(admin_api, [request(GIANT)])
    assert admin_api.delete("sessions/s1/").status_code == 204
    assert admin_api.get("sessions/s1/").status_code == 404
    for model in apps.get_app_config("agent_sessions").get_models():
        names = {field.name for field in model._meta.get_fields()}
        if "session" in names:
            assert not model.objects.filter(session_id=made["id"]).exists(), model
    assert not Blob.objects.exists()
    assert not AgentSession.objects.exists()


#: A word of the content, which the search index, a recap and the memory contain as well.
MARKER = "quokkaville"


def _fill(admin_api: Api, owner_client: Client, project: Project) -> None:
    """Store the marker in every place that a session has."""
    admin_api.post(
        "sessions/",
        {"id": "s1", "system": MARKER, "title": MARKER, "tags": [MARKER], "metadata": {"a": MARKER}},
    )
    for number in range(8):
        push(admin_api, whole_turn(number))
    text = f"{MARKER} " + "lorem ipsum " * 3_000
    push(
        admin_api,
        [request(f"Decided: {MARKER} in src/{MARKER}.py"), answer(MARKER), request(text), answer("ok")],
    )
    admin_api.patch("sessions/s1/", {"title": f"{MARKER} 2", "tags": [f"{MARKER} 2"]})
    admin_api.patch("sessions/s1/memory/", {"task": MARKER, "decisions": [MARKER]}, if_match='"0"')
    admin_api.post("sessions/s1/compact/", {"instructions": MARKER})
    admin_api.post("sessions/s1/compactions/1/recap/", {"text": f"## Decisions\n- {MARKER}"})
    admin_api.get("sessions/s1/prompt/")
    search_index_run(everywhere=True)
    assert MARKER in admin_api.get(f"search/?q={MARKER}").content.decode()
    assert everything_stored().count(MARKER.encode()) > 10


@pytest.mark.django_db
def test_no_table_contains_the_content_after_a_deletion_or_the_retention_period(
    admin_api: Api, owner_client: Client, project: Project
) -> None:
    _fill(admin_api, owner_client, project)
    assert admin_api.delete("sessions/s1/").status_code == 204
    search_index_run(everywhere=True)
    assert MARKER.encode() not in everything_stored()
    _fill(admin_api, owner_client, project)
    retention_set(project=project, days=1)
    later = timezone.now() + timedelta(days=60)
    assert retention_run(now=later) == 1
    assert MARKER.encode() not in everything_stored()


def test_content_used_by_other_sessions_is_kept(admin_api: Api) -> None:
    for name in ("s1", "s2"):
        admin_api.post("sessions/", {"id": name})
        push(admin_api, [request(GIANT)], session=name)
    push(admin_api, [request(OTHER_GIANT)], session="s1")
    assert Blob.objects.count() == 2
    admin_api.delete("sessions/s1/")
    assert Blob.objects.count() == 1
    assert prompt(admin_api, session="s2")["messages"] == [request(GIANT)]
    admin_api.delete("sessions/s2/")
    assert not Blob.objects.exists()


def test_equal_contents_are_stored_per_project(admin_api: Api, stranger_api: Api) -> None:
    for caller in (admin_api, stranger_api):
        caller.post("sessions/", {"id": "s1"})
        push(caller, [request(GIANT)])
    assert Blob.objects.count() == 2
    admin_api.delete("sessions/s1/")
    assert prompt(stranger_api)["messages"] == [request(GIANT)]


def test_the_deletion_is_audited(admin_api: Api) -> None:
    made = admin_api.post("sessions/", {"id": "s1"}).json()
    push(admin_api, whole_turn(0))
    admin_api.delete("sessions/s1/")
    event = AuditEvent.objects.get(action="session.deleted")
    assert (event.target, event.api_key) == ("s1", ApiKey.objects.get(name="admin"))
    assert event.detail == {"id": made["id"], "turns": 1, "messages": 4}
    assert event.project == event.api_key.project


def test_it_requires_the_admin_scope_and_the_project(admin_api: Api, api: Api, stranger_api: Api) -> None:
    admin_api.post("sessions/", {"id": "s1"})
    assert api.delete("sessions/s1/").status_code == 403
    assert stranger_api.delete("sessions/s1/").status_code == 403
    assert admin_api.delete("sessions/s2/").status_code == 404
    assert AgentSession.objects.count() == 1


def test_the_id_of_a_deleted_session_can_be_reused(admin_api: Api) -> None:
    admin_api.post("sessions/", {"id": "s1"})
    push(admin_api, whole_turn(0))
    admin_api.delete("sessions/s1/")
    assert admin_api.post("sessions/", {"id": "s1"}).status_code == 201
    assert push(admin_api, [request()])["turn"] == 0
    assert Message.objects.count() == 1


def test_one_of_two_concurrent_deletions_succeeds(admin_api: Api) -> None:
    admin_api.post("sessions/", {"id": "s1"})
    session = AgentSession.objects.get(external_id="s1")
    for _ in range(2):
        session_delete(session=session)
    assert AuditEvent.objects.filter(action="session.deleted").count() == 1
