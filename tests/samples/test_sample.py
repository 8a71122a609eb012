"""The sample data: one click loads fictional sessions, and one click removes them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiKey
from replay.models import ReplayRun
from sessions.models import AgentSession, Compaction, MemoryRevision, SampleLoad, UsageRollup
from sessions.services.samples import jobs
from sessions.services.samples.catalog import STORIES, TOTAL

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_sample_data_is_loaded_once_and_removed(member_client, project):
    own = AgentSession.objects.create(project=project, external_id="own")
    address = reverse("sample", args=[project.slug])
    for _ in range(2):
        assert member_client.post(address).status_code == 302
    assert "Waiting for a worker" in member_client.get(address).text
    assert SampleLoad.objects.count() == 1
    jobs.sample_run(project_id=project.pk)
    assert member_client.get(address).url == reverse("sessions", args=[project.slug])
    _check_sample_data(project)

    jobs.sample_load(project=project)
    jobs.sample_run(project_id=project.pk)
    assert project.agent_sessions.count() == TOTAL + 1

    assert "Remove sample data" in member_client.get(reverse("sessions", args=[project.slug])).text
    member_client.post(reverse("sample_delete", args=[project.slug]))
    assert list(project.agent_sessions.all()) == [own]
    assert not ReplayRun.objects.exists()
    assert not UsageRollup.objects.exists()
    assert "Remove sample data" not in member_client.get(reverse("sessions", args=[project.slug])).text


def _check_sample_data(project):
    sessions = {each.external_id: each for each in project.agent_sessions.exclude(external_id="own")}
    assert len(sessions) == TOTAL
    now = timezone.now()
    for session in sessions.values():
        assert now - timedelta(days=14) < session.started_at < session.last_active_at < now
        assert session.cost_microusd > 0
        assert session.cache_read_tokens > 0
        assert "sample" in session.tags
    main = sessions["sample-tides"]
    assert main.compactions.filter(state=Compaction.State.DONE, recaps__isnull=False).exists()
    assert main.memory_revisions.count() >= 5
    assert main.messages.filter(tool_name="expand_clip").exists()
    assert main.edits.exclude(referenced_turn=None).exists()
    assert main.peak_prompt_tokens <= main.budget_tokens
    assert sessions["sample-exploration"].parent == main
    assert {"hard", "user"} <= set(Compaction.objects.values_list("trigger", flat=True))
    assert not ApiKey.objects.filter(name="Sample").exists()
    assert ReplayRun.objects.get().sessions == 3
    days = set(UsageRollup.objects.values_list("at__date", flat=True))
    assert len(days) >= 5
    assert MemoryRevision.objects.filter(created_at__gt=now - timedelta(hours=1)).count() == 0


@pytest.mark.slow
def test_an_interrupted_load_resumes_and_a_failed_one_can_be_retried(project, monkeypatch):
    played, failing = [], {"alerts"}

    def play(**arguments):
        story = arguments["story"]
        if story.key in failing:
            raise OSError("the disk is full")
        played.append(story.key)
        return AgentSession.objects.create(project=project, external_id=story.key)

    monkeypatch.setattr(jobs, "story_play", play)
    jobs.sample_load(project=project)
    for _ in range(3):
        SampleLoad.objects.update(lease_until=None)
        jobs.sample_run(project_id=project.pk)
    load = SampleLoad.objects.get()
    assert (load.state, load.done) == (SampleLoad.State.FAILED, 2)

    failing.clear()
    jobs.sample_load(project=project)
    jobs.sample_run(project_id=project.pk)
    assert SampleLoad.objects.get().state == SampleLoad.State.DONE
    assert played == [story.key for story in STORIES]
