"""Deleting a session: its own data is deleted, shared data stays, and the audit log records who did it."""

from __future__ import annotations

from datetime import timedelta
from io import BytesIO, StringIO

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db.models.signals import post_delete
from django.utils import timezone

from accounts.models import ApiKey, AuditEvent, Project
from replay.models import ReplayRun
from replay.services.execution import run_step
from sessions.models import AgentSession, Blob, Message
from sessions.services.compactions.reference_scans import reference_scans_run
from sessions.services.imports.jobs import import_job_create
from sessions.services.search.indexing import search_index_run
from sessions.services.sessions.comments import comment_create
from sessions.services.sessions.lifecycle import session_delete
from sessions.services.sessions.profiles import profiles_refresh
from sessions.services.sessions.retention import retention_run, retention_set
from sessions.services.sessions.saved_views import view_save
from sessions.services.sessions.sharing import link_create
from sessions.services.tools.counting import tools_count
from sessions.services.webhooks.subscriptions import webhook_create
from tests.api.client import Api
from tests.api.talk import answer, call, output, prompt, push, request, result, whole_turn
from tests.api.test_redaction import everything_stored

GIANT = output(0, 2_000)
OTHER_GIANT = output(1, 2_000)


@pytest.mark.slow
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


def _fill(admin_api: Api, owner: User) -> None:
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
    path = f"src/{MARKER}.py"
    push(admin_api, [call("read", path=path), result("read", f"{MARKER}\n{output(90)}"), answer(MARKER)])
    admin_api.patch("sessions/s1/", {"title": f"{MARKER} 2", "tags": [f"{MARKER} 2"]})
    admin_api.patch("sessions/s1/memory/", {"task": MARKER, "decisions": [MARKER]}, if_match='"0"')
    admin_api.post("sessions/s1/compact/", {"instructions": MARKER})
    admin_api.post("sessions/s1/compactions/1/recap/", {"text": f"## Decisions\n- {MARKER}"})
    admin_api.get("sessions/s1/prompt/")
    proposed = {"items": [{"field": "decisions", "text": MARKER}]}
    assert admin_api.post("sessions/s1/memory/proposals/", proposed).status_code < 300
    session = AgentSession.objects.get(external_id="s1", project__slug="alpha")
    comment_create(session=session, turn=0, text=MARKER, author_id=owner.pk)
    asked = {"sessions": ["s1"], "policies": ["balanced"], "ratios": [0.2]}
    replay = admin_api.post("replays/", asked).json()
    while ReplayRun.objects.get(pk=replay["id"]).state in ReplayRun.OPEN:
        run_step(run_id=replay["id"])
    search_index_run(everywhere=True)
    tools_count(everywhere=True)
    reference_scans_run()
    profiles_refresh(everywhere=True)
    assert MARKER in admin_api.get(f"search/?q={MARKER}").content.decode()
    assert everything_stored().count(MARKER.encode()) > 10


@pytest.mark.slow
@pytest.mark.django_db
def test_no_table_contains_the_content_after_a_deletion_or_the_retention_period(
    admin_api: Api, owner: User, project: Project
) -> None:
    _fill(admin_api, owner)
    assert admin_api.delete("sessions/s1/").status_code == 204
    search_index_run(everywhere=True)
    assert MARKER.encode() not in everything_stored()
    _fill(admin_api, owner)
    retention_set(project=project, days=1)
    later = timezone.now() + timedelta(days=60)
    assert retention_run(now=later) == 1
    assert MARKER.encode() not in everything_stored()


@pytest.mark.slow
@pytest.mark.django_db
def test_nothing_of_a_deleted_project_remains(
    admin_api: Api, stranger_api: Api, owner: User, project: Project
) -> None:
    project.allows_sharing = True
    project.save()
    webhook_create(project=project, url="https://93.184.215.14/hook", events=["compaction.finished"])
    view_save(project=project, user=owner, name=MARKER, query=f"q={MARKER}")
    import_job_create(project=project, name=MARKER, file=BytesIO(b"{}"), is_dispatched=False)
    stranger_api.post("sessions/", {"id": "s1", "title": "kept"})
    _fill(admin_api, owner)
    link_create(session=AgentSession.objects.get(external_id="s1", project=project), days=3)
    with pytest.raises(CommandError, match="--yes"):
        call_command("delete_project", "alpha")
    call_command("delete_project", "alpha", "--yes", stdout=StringIO())
    stored = everything_stored()
    assert MARKER.encode() not in stored
    assert str(project.pk).encode() not in stored
    assert AuditEvent.objects.get(action="project.deleted").target == "alpha"
    assert stranger_api.get("sessions/s1/").json()["title"] == "kept"
    assert admin_api.get("sessions/").status_code == 401


@pytest.mark.slow
def test_what_a_running_request_adds_to_a_deleted_project_is_deleted_too(
    admin_api: Api, stranger_api: Api, project: Project
) -> None:
    admin_api.post("sessions/", {"id": "s1"})
    stranger_api.post("sessions/", {"id": "late"})
    push(stranger_api, [request(GIANT)], session="late")

    def add(**_: object) -> None:
        AgentSession.objects.filter(external_id="late").update(project=project)
        Blob.objects.update(project=project)

    post_delete.connect(add, sender=AgentSession)
    try:
        call_command("delete_project", "alpha", "--yes", stdout=StringIO())
    finally:
        post_delete.disconnect(add, sender=AgentSession)
    assert not Project.objects.filter(slug="alpha").exists()
    assert not AgentSession.objects.exists()
    assert not Blob.objects.exists()


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
    session = AgentSession.objects.get(external_id="s1", project__slug="alpha")
    for _ in range(2):
        session_delete(session=session)
    assert AuditEvent.objects.filter(action="session.deleted").count() == 1
