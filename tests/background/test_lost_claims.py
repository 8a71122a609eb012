"""The cost of every summary is recorded, also of those that are not used. Secrets in summaries are not."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Project
from sessions.models import AgentSession, Compaction
from sessions.selectors.recaps import recap_newest, recap_value
from sessions.services.compactions import background
from sessions.services.compactions.background import (
    CompactionJob,
    compaction_claim,
    compaction_finish,
    compaction_retry_or_fail,
    compaction_run,
)
from sessions.services.compactions.summaries import SummaryAttempt, summary_attempt
from sessions.services.compactions.triggers import compaction_request
from sessions.services.sessions.lifecycle import session_delete
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused
from tests.provider import behaviours
from tests.provider.server import FakeProvider

pytestmark = [pytest.mark.django_db, pytest.mark.slow]  # Anthropic's SDK takes seconds to load


@reused
def session(project: Project) -> AgentSession:
    made = make_session(project, [reading_turn(n, f"plain words {n} " * 60) for n in range(20)])
    AgentSession.objects.filter(pk=made.pk).update(budget_tokens=2_000)
    made.refresh_from_db()
    return made


@pytest.fixture
def pending(session: AgentSession, provider: FakeProvider) -> Compaction:
    return compaction_request(session=session, reason="requested in the dashboard")


def summarized(compaction: Compaction) -> tuple[CompactionJob, SummaryAttempt]:
    """Claim a compaction and call the model, as a worker does, which then does nothing for a while."""
    claimed = compaction_claim(compaction_id=compaction.pk)
    assert claimed is not None
    job = background._job(claimed)
    return job, background._summarize(job)


def test_a_late_worker_adds_its_cost_to_that_of_the_next_one(pending: Compaction) -> None:
    slow = summarized(pending)
    compaction_retry_or_fail(compaction=slow[0].compaction, reason="the worker was lost")
    following = summarized(pending)
    compaction_finish(job=slow[0], attempt=slow[1])
    compaction_finish(job=following[0], attempt=following[1])
    costs = [attempt.cost_microusd or 0 for _, attempt in (slow, following)]
    pending.refresh_from_db()
    assert all(costs)
    assert (pending.state, pending.cost_microusd) == (Compaction.State.DONE, sum(costs))
    assert pending.reason == "requested in the dashboard"


def test_a_late_failure_does_not_change_the_record(pending: Compaction, provider: FakeProvider) -> None:
    provider.script(behaviours.refusal())
    slow = summarized(pending)
    compaction_retry_or_fail(compaction=slow[0].compaction, reason="the worker was lost")
    compaction_run(compaction_id=pending.pk)
    pending.refresh_from_db()
    record, cost = pending.record, pending.cost_microusd or 0
    assert record["summary_used"]
    compaction_finish(job=slow[0], attempt=slow[1])
    pending.refresh_from_db()
    assert pending.record == record
    assert pending.cost_microusd == cost + (slow[1].cost_microusd or 0)


def test_the_last_attempt_states_why_the_earlier_ones_failed(
    pending: Compaction, provider: FakeProvider
) -> None:
    for _ in range(2):
        lost = compaction_claim(compaction_id=pending.pk)
        assert lost is not None
        compaction_retry_or_fail(compaction=lost, reason="the worker was lost")
    compaction_run(compaction_id=pending.pk)
    pending.refresh_from_db()
    assert (pending.state, len(provider.requests)) == (Compaction.State.DONE, 0)
    assert pending.record["fallback"] == "earlier attempts failed: the worker was lost"
    assert pending.reason == "requested in the dashboard"


def test_a_summary_that_could_not_be_applied_is_paid_for(
    pending: Compaction, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError

    with monkeypatch.context() as broken:
        broken.setattr(background, "_apply", fail)
        compaction_run(compaction_id=pending.pk)
    pending.refresh_from_db()
    paid = pending.cost_microusd or 0
    compaction_run(compaction_id=pending.pk)
    pending.refresh_from_db()
    assert len(provider.requests) == 2
    assert (pending.state, pending.cost_microusd) == (Compaction.State.DONE, 2 * paid)
    assert paid


def test_a_secret_in_a_summary_is_stored_nowhere(pending: Compaction, provider: FakeProvider) -> None:
    made_up = "sk-ant-api03-" + "A1b2C3d4E5" * 9 + "AA"
    facts = [
        {"text": text, "sources": []}
        for text in (f"The key is {made_up}", "Log in with mysql -u root -pcorrecthorse")
    ]
    provider.script(behaviours.summary(facts=facts))
    compaction_run(compaction_id=pending.pk)
    pending.refresh_from_db()
    assert pending.record["summary_used"]
    stored = recap_newest(pending)
    assert stored
    assert "correcthorse" not in recap_value(stored).render()
    assert made_up not in str(pending.record)
    assert "[redacted:" in str(pending.record["summary"]["dropped_identifiers"])


def test_a_session_may_be_deleted_while_the_model_writes(
    pending: Compaction, session: AgentSession, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deleted_meanwhile(**fields: Any) -> SummaryAttempt:
        attempt = summary_attempt(**fields)
        session_delete(session=session)
        return attempt

    monkeypatch.setattr(background, "summary_attempt", deleted_meanwhile)
    compaction_run(compaction_id=pending.pk)
    assert len(provider.requests) == 1
    assert not Compaction.objects.exists()
