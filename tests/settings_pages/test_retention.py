"""Retention: preview, notice period, deletion in batches and audit events."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from celery import current_app
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEvent, Project
from sessions import tasks
from sessions.models import AgentSession
from sessions.services.sessions import retention
from sessions.services.sessions.retention import NOTICE, retention_dry_run, retention_run, retention_set
from tests.plugins.reused import reused
from tests.trends.turns import session_make

pytestmark = pytest.mark.django_db


@reused
def sessions(project):
    """Sessions that have been idle for 1, 40 and 100 days."""
    now = timezone.now()
    return [
        session_make(project, f"{days}d", last_active_at=now - timedelta(days=days), turn_count=days)
        for days in (1, 40, 100)
    ]


def remaining() -> set[str]:
    return set(AgentSession.objects.values_list("external_id", flat=True))


def test_a_dry_run_counts_and_deletes_nothing(project, sessions):
    found = retention_dry_run(project=project, days=30)
    assert (found.sessions, found.turns) == (2, 140)
    assert found.oldest == sessions[2].last_active_at
    assert len(remaining()) == 3


def test_nothing_is_deleted_before_the_notice_period_ends(project, sessions, other_project):
    theirs = session_make(other_project, "theirs", last_active_at=sessions[2].last_active_at)
    retention_set(project=project, days=50)
    assert retention_run() == 0
    assert retention_run(now=timezone.now() + NOTICE + timedelta(minutes=1)) == 1
    assert remaining() == {"1d", "40d", "theirs"}
    assert AgentSession.objects.filter(pk=theirs.pk).exists()
    assert AuditEvent.objects.get(action="retention.ran").detail == {"sessions": 1, "days": 50}


def test_runs_are_repeated_until_all_old_sessions_are_deleted(project, sessions, monkeypatch):
    monkeypatch.setitem(current_app.conf, "task_always_eager", True)
    monkeypatch.setattr(retention, "_BATCH", 1)
    retention_set(project=project, days=30)
    Project.objects.update(retention_begins_at=timezone.now())
    tasks.retention_run()
    assert remaining() == {"1d"}


def test_a_shorter_period_restarts_the_notice_and_a_longer_one_does_not(project):
    retention_set(project=project, days=50)
    first = project.retention_begins_at
    retention_set(project=project, days=90)
    assert project.retention_begins_at == first
    retention_set(project=project, days=10)
    assert project.retention_begins_at > first
    retention_set(project=project, days=None)
    assert (project.retention_days, project.retention_begins_at) == (None, None)


@pytest.mark.slow
def test_deletion_runs_in_batches(project, sessions, monkeypatch):
    monkeypatch.setattr("sessions.services.sessions.retention._BATCH", 1)
    retention_set(project=project, days=30)
    later = timezone.now() + NOTICE + timedelta(minutes=1)
    assert [retention_run(now=later) for _ in range(3)] == [1, 1, 0]
    assert remaining() == {"1d"}


def address(name: str = "settings_retention") -> str:
    return reverse(name, args=["alpha"])


def test_the_page_previews_the_deletion_before_saving(project, sessions, owner_client):
    shown = owner_client.post(address(), {"days": 30})
    assert shown.context["dry_run"].sessions == 2
    project.refresh_from_db()
    assert project.retention_days is None
    assert owner_client.post(address(), {"days": 30, "confirmed": 1}).status_code == 302
    project.refresh_from_db()
    assert project.retention_days == 30
    assert b"30 days" in owner_client.get(address()).content
    owner_client.post(address("settings_retention_off"))
    project.refresh_from_db()
    assert project.retention_days is None


def test_a_long_period_can_be_confirmed(project, owner_client):
    """The form contains the number without the thousands separator of the text."""
    page = owner_client.post(address(), {"days": 1_200}).text
    assert "<b>1,200 days</b>" in page
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', page))
    assert owner_client.post(address(), fields).status_code == 302
    project.refresh_from_db()
    assert project.retention_days == 1_200


@pytest.mark.parametrize("days", ["", "0", "-1", "x", "99999999"])
def test_invalid_periods_are_rejected(days, owner_client):
    assert owner_client.post(address(), {"days": days, "confirmed": 1}).status_code == 422
