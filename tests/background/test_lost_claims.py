"""The cost of every summary is recorded, also of those that are not used. Secrets in summaries are not."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from accounts.models import Project
from sessions.models import AgentSession, Compaction, Webhook, WebhookDelivery
from sessions.selectors.compactions.recaps import recap_newest, recap_value
from sessions.services.compactions.background import compaction_claim, compaction_run, compactions_sweep
from sessions.services.compactions.triggers import compaction_request
from sessions.services.sessions.lifecycle import session_delete
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused
from tests.provider import behaviours
from tests.provider.meanwhile import meanwhile
from tests.provider.server import FakeProvider

EVENTS = ["compaction.started", "compaction.finished"]

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


def report(project: Project) -> None:
    Webhook.objects.create(project=project, url="https://a.example/", secret="s", events=EVENTS)


def reported() -> list[str]:
    """Return the events that were reported to webhooks."""
    return list(WebhookDelivery.objects.order_by("created_at").values_list("event", flat=True))


def lose(compaction: Compaction) -> None:
    """Let the sweep take the compaction from its worker, whose lease has ended."""
    past = timezone.now() - timedelta(seconds=1)
    Compaction.objects.filter(pk=compaction.pk).update(lease_until=past)
    compactions_sweep()


def test_a_worker_whose_claim_is_taken_while_it_waits_adds_its_cost(
    pending: Compaction, provider: FakeProvider
) -> None:
    AgentSession.objects.update(failures=1)
    report(pending.session.project)
    provider.script(meanwhile(partial(lose, pending), behaviours.summary()))
    compaction_run(compaction_id=pending.pk)
    pending.refresh_from_db()
    first = pending.cost_microusd or 0
    assert (pending.state, pending.attempts) == (Compaction.State.PENDING, 1)
    assert first
    compaction_run(compaction_id=pending.pk)
    pending.refresh_from_db()
    assert (pending.state, pending.cost_microusd) == (Compaction.State.DONE, 2 * first)
    assert pending.reason == "requested in the dashboard"
    assert reported() == EVENTS
    assert AgentSession.objects.get().failures == 0


def test_a_worker_does_not_apply_what_another_one_is_running(
    pending: Compaction, provider: FakeProvider
) -> None:
    def take_over() -> None:
        lose(pending)
        compaction_claim(compaction_id=pending.pk)

    provider.script(meanwhile(take_over, behaviours.summary()))
    compaction_run(compaction_id=pending.pk)
    pending.refresh_from_db()
    assert (pending.state, pending.attempts) == (Compaction.State.RUNNING, 2)
    assert pending.cost_microusd


def test_a_compaction_whose_workers_all_die_fails(pending: Compaction, session: AgentSession) -> None:
    report(session.project)
    for _ in range(3):
        assert compaction_claim(compaction_id=pending.pk) is not None
        lose(pending)
    pending.refresh_from_db()
    session.refresh_from_db()
    assert (pending.state, pending.reason) == (Compaction.State.FAILED, "the worker was lost")
    assert (session.failures, reported()) == (1, EVENTS)


def test_a_late_failure_does_not_change_the_record(pending: Compaction, provider: FakeProvider) -> None:
    records = []

    def take_over() -> None:
        lose(pending)
        compaction_run(compaction_id=pending.pk)
        pending.refresh_from_db()
        records.append((pending.record, pending.cost_microusd or 0))

    provider.script(meanwhile(take_over, behaviours.refusal()))
    compaction_run(compaction_id=pending.pk)
    pending.refresh_from_db()
    [(record, cost)] = records
    assert record["summary_used"]
    assert pending.record == record
    assert (pending.cost_microusd or 0) > cost > 0


def test_the_last_attempt_states_why_the_earlier_ones_failed(
    pending: Compaction, provider: FakeProvider
) -> None:
    for _ in range(2):
        assert compaction_claim(compaction_id=pending.pk) is not None  # the worker dies here
        lose(pending)
    compaction_run(compaction_id=pending.pk)
    pending.refresh_from_db()
    assert (pending.state, len(provider.requests)) == (Compaction.State.DONE, 0)
    assert pending.record["fallback"] == "earlier attempts failed: the worker was lost"
    assert pending.reason == "requested in the dashboard"


def test_a_summary_that_could_not_be_applied_is_paid_for(
    pending: Compaction, session: AgentSession, provider: FakeProvider
) -> None:
    row = session.messages.filter(position=2)
    body = row.get().body
    provider.script(meanwhile(partial(row.update, body=b"not json"), behaviours.summary()))
    compaction_run(compaction_id=pending.pk)
    row.update(body=body)
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
    pending: Compaction, session: AgentSession, provider: FakeProvider
) -> None:
    provider.script(meanwhile(partial(session_delete, session=session), behaviours.summary()))
    compaction_run(compaction_id=pending.pk)
    assert len(provider.requests) == 1
    assert not Compaction.objects.exists()
