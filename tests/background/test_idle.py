"""Sessions that have become idle, among many others."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Project
from sessions import tasks
from sessions.models import AgentSession
from tests.api.client import Api
from tests.api.talk import push, whole_turn

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_small_idle_sessions_do_not_delay_the_compaction_of_others(api_key: str, project: Project) -> None:
    api, policy = Api(api_key), {"idle_seconds": 1, "target": 0.1}
    api.post("sessions/", {"id": "s1", "policy": policy, "budget": {"input_tokens": 4_000}})
    for number in range(4):
        push(api, whole_turn(number))
    now = timezone.now()
    AgentSession.objects.update(last_active_at=now - timedelta(hours=1))
    AgentSession.objects.bulk_create(
        AgentSession(
            project=project, external_id=f"s-{n}", policy=policy, last_active_at=now - timedelta(hours=2)
        )
        for n in range(600)
    )
    tasks.compactions_idle()
    assert [each["trigger"] for each in api.get("sessions/s1/compactions/").json()["data"]] == ["idle"]


def test_an_idle_session_is_compacted_above_the_soft_limit_too(api: Api) -> None:
    policy = {"idle_seconds": 1}
    api.post("sessions/", {"id": "s1", "policy": policy, "budget": {"input_tokens": 2_600}})
    for number in range(3):
        pushed = push(api, whole_turn(number))
    assert 0.7 < pushed["prompt"]["occupancy"] < 0.95
    AgentSession.objects.update(last_active_at=timezone.now() - timedelta(hours=1))
    tasks.compactions_idle()
    assert [each["trigger"] for each in api.get("sessions/s1/compactions/").json()["data"]] == ["idle"]
