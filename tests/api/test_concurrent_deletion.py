"""Requests and workers that use a session while it is being deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import transaction
from django.db.models.signals import pre_delete
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Project
from sessions.models import AgentSession
from sessions.selectors.health.facts import health_facts
from sessions.services.search.indexing import search_index_run
from sessions.services.sessions.lifecycle import NewSession, session_create, session_delete
from sessions.services.sessions.profiles import profiles_refresh
from sessions.services.sessions.retention import retention_run
from sessions.services.spending.rollups import rollups_fill
from sessions.services.tools.counting import tools_count
from sessions.services.webhooks.subscriptions import webhook_create, webhook_delete
from tests.api.client import Api
from tests.api.talk import push, request, whole_turn
from tests.background.world import eventually
from tests.locking import blocking, in_thread, waiting

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("session"), pytest.mark.slow]


def during_deletion(*works: Callable[[], Any]) -> list[Any]:
    """Run all functions while the session is being deleted, and return their results."""
    session = AgentSession.objects.get()
    with blocking(*works) as jobs:
        session_delete(session=session)
    return [job.result() for job in jobs]


def test_the_session_is_not_found(api: Api, admin_api: Api, member_client: Client) -> None:
    push(api, [request()])
    Project.objects.update(allows_sharing=True)
    session = AgentSession.objects.get()
    page = reverse("session", args=[session.project.slug, session.pk])
    responses = during_deletion(
        partial(api.post, "sessions/s1/compact/", {}),
        partial(api.call, "PUT", "sessions/s1/messages/0/pin/"),
        partial(api.post, "sessions/", {"id": "child", "parent": "s1"}),
        partial(admin_api.post, "replays/", {"sessions": ["s1"], "policies": ["balanced"], "ratios": [0.2]}),
        partial(member_client.post, f"{page}compact/"),
        partial(member_client.post, f"{page}turns/0/comments/", {"text": "Why?"}),
        partial(member_client.post, f"{page}share/", {"days": 7}),
    )
    assert {response.status_code for response in responses} == {404}


def test_a_webhook_that_is_being_deleted_is_not_found(
    admin_api: Api, project: Project, owner_client: Client
) -> None:
    webhook = webhook_create(project=project, url="https://93.184.215.14/", events=["compaction.finished"])
    page = reverse("settings_webhook_switch", args=[project.slug, webhook.pk])
    works = [
        partial(admin_api.call, "PATCH", f"webhooks/{webhook.pk}/", {"active": False}),
        partial(owner_client.post, page),
    ]
    with blocking(*works) as jobs:
        webhook_delete(webhook=webhook)
    assert [job.result().status_code for job in jobs] == [404, 404]


def test_a_project_that_is_being_deleted_is_not_found(admin_api: Api, project: Project) -> None:
    url = "https://93.184.215.14/"
    with blocking(partial(admin_api.post, "webhooks/", {"url": url})) as jobs:
        Project.objects.filter(pk=project.pk).delete()
    assert jobs[0].result().status_code == 404


def test_workers_go_on(api: Api) -> None:
    push(api, [request()])
    works = [partial(work, everywhere=True) for work in (tools_count, search_index_run, profiles_refresh)]
    assert during_deletion(*works) == [0, 0, 0]


def test_a_session_that_is_added_while_its_project_is_deleted_is_deleted_too(
    api: Api, project: Project, other_project: Project
) -> None:
    """It is committed after the last sessions were deleted, and before the project is."""
    adds = partial(session_create, project_id=project.pk, new=NewSession(external_id="late"))

    def add(**_: object) -> None:
        pre_delete.disconnect(add, sender=Project)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(in_thread, adds).result()

    pre_delete.connect(add, sender=Project)
    call_command("delete_project", project.slug, "--yes", stdout=StringIO())
    assert list(Project.objects.all()) == [other_project]
    assert not AgentSession.objects.exists()


def test_retention_keeps_a_session_that_becomes_active_while_it_runs(api: Api) -> None:
    push(api, [request()])
    now = timezone.now()
    Project.objects.update(retention_days=30, retention_begins_at=now)
    AgentSession.objects.update(last_active_at=now - timedelta(days=31))
    with blocking(retention_run) as jobs:
        AgentSession.objects.update(last_active_at=now)
    assert jobs[0].result() == 0
    assert AgentSession.objects.exists()


def test_a_worker_and_a_deletion_do_not_lock_each_other_out(
    api: Api, caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    """The worker stores something about a session that has just been locked by its deletion."""
    for work in (search_index_run, tools_count, rollups_fill):
        with subtests.test(work.__module__):
            api.post("sessions/", {"id": "s2", "format": "anthropic"})
            push(api, whole_turn(0), session="s2")
            work()
            push(api, whole_turn(1), session="s2")
            session = AgentSession.objects.get(external_id="s2")
            with ThreadPoolExecutor(1) as pool:
                with transaction.atomic():
                    AgentSession.objects.select_for_update().get(pk=session.pk)
                    job = pool.submit(in_thread, work)
                    eventually(lambda job=job: waiting() or job.done())
                    session_delete(session=session)
                job.result()
            assert not AgentSession.objects.filter(pk=session.pk).exists()
    assert caplog.records == []


def test_a_revert_before_the_deletion_succeeds(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The session is deleted after the revert is stored, while its profile is computed."""
    for number in range(6):
        push(api, whole_turn(number))
    assert api.post("sessions/s1/compact/", {}).json()["state"] == "done"

    def deleted(ids: Iterable[UUID]) -> Any:
        ids = list(ids)
        facts = health_facts(ids)
        session_delete(session=AgentSession.objects.get())
        return facts

    monkeypatch.setattr("sessions.services.sessions.profiles.health_facts", deleted)
    assert api.post("sessions/s1/compactions/1/revert/").status_code == 200
    assert caplog.records == []
