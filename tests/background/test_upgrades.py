"""Recap upgrades: waiting recaps do not block others, and the model reads all that a recap replaces."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Project
from compaction.policy import Policy
from sessions.models import AgentSession, Compaction, Edit, PromptSnapshot
from sessions.services.compactions.background import compaction_run
from sessions.services.compactions.recap_upgrades import recap_upgrades_queue
from tests.api.client import Api
from tests.api.talk import call, output, request, result
from tests.provider import behaviours
from tests.provider.server import FakeProvider

pytestmark = pytest.mark.django_db

AGO = timedelta(hours=2)
MANY = 25

Stuck = Callable[[AgentSession, Project], None]


@pytest.fixture(autouse=True)
def key(settings: Any) -> None:
    settings.CONTEXTAPP_ANTHROPIC_API_KEY = "key of the tests"


def waiting(project: Project, name: str, ago: timedelta) -> Compaction:
    """Create a compaction in an idle session whose deterministic recap awaits a model's."""
    session = project.agent_sessions.create(
        external_id=name, format="openai", last_active_at=timezone.now() - ago, message_count=2
    )
    row = Compaction.objects.create(
        session=session,
        number=1,
        state=Compaction.State.DONE,
        trigger="soft",
        turn_index=0,
        snapshot_position=2,
        policy=Policy().to_json(),
        awaits_upgrade=True,
        finished_at=timezone.now() - ago,
    )
    edit = Edit.objects.create(
        compaction=row,
        session=session,
        ordinal=0,
        strategy="recap",
        op="evict",
        position=0,
        end=1,
        tokens_before=10,
        tokens_after=1,
    )
    PromptSnapshot.objects.create(session=session, compaction_number=1, data=b"", edits=[edit.pk])
    return row


def breaker_open(session: AgentSession, project: Project) -> None:
    session.failures, session.failed_at = Policy().max_failures, timezone.now()
    session.save()


def no_model(session: AgentSession, project: Project) -> None:
    project.summarizer_model = "off"
    project.save()


def under_way(session: AgentSession, project: Project) -> None:
    session.compactions.create(number=2, trigger="user", turn_index=0, snapshot_position=2)


@pytest.mark.slow
@pytest.mark.parametrize("stuck", [breaker_open, no_model, under_way])
def test_waiting_recaps_do_not_block_others(stuck: Stuck, project: Project, other_project: Project) -> None:
    for number in range(MANY):
        stuck(waiting(project, f"s{number}", AGO).session, project)
    able = waiting(other_project, "able", AGO / 2)
    assert recap_upgrades_queue() == 1
    [made] = Compaction.objects.filter(trigger="upgrade")
    assert made.upgrades == able
    assert recap_upgrades_queue() == 0


@pytest.mark.slow
def test_a_pass_handles_a_limited_number(project: Project) -> None:
    for number in range(MANY):
        waiting(project, f"s{number}", AGO)
    assert [recap_upgrades_queue(), recap_upgrades_queue(), recap_upgrades_queue()] == [20, 5, 0]


def test_a_failure_in_the_future_does_not_open_the_breaker(project: Project) -> None:
    """The clock was set back since."""
    session = waiting(project, "s", AGO).session
    session.failures, session.failed_at = Policy().max_failures, timezone.now() + timedelta(hours=2)
    session.save()
    assert recap_upgrades_queue() == 1


def use_tools(api: Api, first: int, *messages: dict[str, Any]) -> None:
    """Push a request, and calls and results without an answer, so that the request remains the latest."""
    for number in range(first, first + 6):
        name = f"toolu_{number:05}"
        messages = (*messages, call(name, path=f"f{number}.py"), result(name, output(number)))
    assert api.post("sessions/s1/turns/", {"messages": messages}).status_code == 201


def compact(api: Api) -> Compaction:
    assert api.post("sessions/s1/compact/").status_code == 202
    return run(Compaction.objects.get(state=Compaction.State.PENDING))


def run(compaction: Compaction) -> Compaction:
    compaction_run(compaction_id=compaction.pk)
    compaction.refresh_from_db()
    return compaction


def idle_upgrade() -> Compaction:
    """Run the upgrade of the session after a pause."""
    AgentSession.objects.update(last_active_at=timezone.now() - AGO)
    assert recap_upgrades_queue() == 1
    return run(Compaction.objects.get(trigger="upgrade", state=Compaction.State.PENDING))


def assert_requests_are_known(provider: FakeProvider, *requests: str) -> None:
    """Check that the last request to the model contains those that remain in the prompt."""
    content = provider.requests[-1].body["messages"][0]["content"]
    kept = content.split("<requests-")[1].split("</requests-")[0]
    assert re.findall("user: (.*)", kept) == list(requests)


@pytest.mark.slow
def test_the_model_reads_a_request_that_an_earlier_compaction_kept(api: Api, provider: FakeProvider) -> None:
    session = {"id": "s1", "format": "anthropic", "budget": {"input_tokens": 10_000}, "policy": {"soft": 0}}
    assert api.post("sessions/", session).status_code == 201
    use_tools(api, 0, request())
    use_tools(api, 6, request("Rename the class Pool."))
    assert compact(api).record["summary_used"]
    assert_requests_are_known(provider, "Please read the files.", "Rename the class Pool.")
    assert "Rename the class Pool." in api.get("sessions/s1/prompt/").content.decode()
    use_tools(api, 12, request("Document it."))
    provider.script(behaviours.error(401))
    assert "rejected the API key" in compact(api).record["fallback"]
    assert idle_upgrade().state == Compaction.State.DONE
    assert "Rename the class Pool." in str(provider.requests[-1].body["messages"])
    assert_requests_are_known(provider, "Please read the files.", "Document it.")


@pytest.mark.slow
def test_a_failed_upgrade_states_the_reason(api: Api, provider: FakeProvider) -> None:
    session = {"id": "s1", "format": "anthropic", "budget": {"input_tokens": 10_000}, "policy": {"soft": 0}}
    assert api.post("sessions/", session).status_code == 201
    use_tools(api, 0, request())
    use_tools(api, 6)
    provider.script(behaviours.error(401), behaviours.error(404))
    assert compact(api).state == Compaction.State.DONE
    upgrade = idle_upgrade()
    assert upgrade.state == Compaction.State.SKIPPED
    problem = "the provider at this URL has no model claude-haiku-5-5 (status 404)"
    assert upgrade.reason == f"the recap was not replaced: {problem}"
