"""Replay runs: create, execute in slices, cancel, resume, confirm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from accounts.actors import Actor
from accounts.models import AuditEvent, Project
from compaction.messages import Usage
from compaction.policy import Policy, get_policy
from compaction.replay.costs import actual_cost
from compaction.replay.prices import Prices
from compaction.replay.setting import Limit
from importers.base import ImportedSession
from pricing.custom import CustomPrice
from replay.models import ReplayResult, ReplayRun
from replay.offline.logs import log_transcript
from replay.selectors.price_tables import transcript_prices
from replay.selectors.results import result_rows, sessions_newest, target_results
from replay.selectors.transcripts import session_transcript
from replay.services import execution, runs
from replay.services.advice import advice_apply
from replay.services.execution import STEP
from sessions.models import AgentSession
from sessions.services.imports.store import session_import
from sessions.services.reconcile.branches import session_fork
from sessions.services.spending.custom_prices import custom_price_set
from tests.pages.transcripts import MODEL, make_session, message, reading_turn, turn
from tests.provider.server import FakeProvider
from tests.replay.conftest import LIMITS, POLICIES, finish

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("sends_whole", [False, True])
def test_the_report_shows_which_prompt_the_agent_sent(session: AgentSession, sends_whole: bool) -> None:
    """For example, the gateway forwards requests unchanged while the store is slow."""
    for stored in session.turns.all():
        whole, is_compacted = stored.prompt_estimate, stored.index >= 20
        sent = whole // 4 if is_compacted and not (sends_whole and stored.index == 25) else whole
        session.turns.filter(index=stored.index).update(
            prompt_served=whole // 4 if is_compacted else whole, prompt_reported=round(1.2 * sent) + 9_000
        )
    fork = session_fork(parent=session, at=session.message_count - 1, context_start=0)
    for each in (session, fork):
        read = session_transcript(each)
        shares = [round(read.sent(call) / read.size(call), 2) for call in read.calls[20:29]]
        assert shares == [0.25] * 5 + [1 if sends_whole else 0.25] + [0.25] * 3


def test_a_log_and_its_import_have_the_same_calls(project: Project) -> None:
    """For example, Claude Code logs the output tokens at which a response began to stream."""
    turns = [reading_turn(n, f"plain words {n} " * 200) for n in range(4)]
    answer = message("assistant", "A long answer. " * 300, "last")
    turns.append(turn(4, [answer], usage=Usage(uncached_tokens=9_000, output_tokens=2), model="gpt-5"))
    log = ImportedSession(external_id="s", format="anthropic", agent="reader", turns=turns, model=MODEL)
    stored = session_transcript(session_import(project=project, imported=log).session)
    read = log_transcript(log)
    for made, kept in zip(read.calls, stored.calls, strict=True):
        assert made.usage.counts == kept.usage.counts
        assert (made.model, made.at, read.sent(made)) == (kept.model, kept.at, stored.sent(kept))
    assert read.calls[-1].usage.output_tokens > 500
    prices = transcript_prices(read)
    assert actual_cost(read, prices) == pytest.approx(actual_cost(stored, transcript_prices(stored)), abs=5)


def test_off_has_the_stored_sizes(session: AgentSession) -> None:
    transcript = session_transcript(session)
    stored = list(session.turns.order_by("index").values_list("prompt_estimate", flat=True))
    assert [transcript.size(call) for call in transcript.calls] == stored


@pytest.mark.slow
def test_a_run_is_executed(make: Callable[..., ReplayRun], dispatched: list[tuple[str, str]]) -> None:
    run = finish(make())
    assert (STEP, str(run.pk)) in dispatched
    assert run.state == ReplayRun.State.DONE
    assert run.done == run.steps == 6
    rows = result_rows(run)
    assert [(row.setting.limit.label, row.setting.policy.name) for row in rows] == [
        (limit.label, policy.name) for limit in LIMITS for policy in POLICIES
    ]
    assert all(row.total.calls == 30 and row.valid_share == 1 for row in rows)
    assert rows[0].fits_share == 1
    assert rows[3].fits_share < 1  # all messages shown, at half the budget
    assert not rows[3].on_front
    assert any(row.on_front for row in rows)
    founds = target_results(run, session_id=run.targets.get().session_id)
    assert len(founds) == 6
    assert founds[0].lost_turn is None
    assert founds[3].lost_turn is not None


@pytest.mark.slow
def test_lost_references_are_searched_for(project: Project) -> None:
    turns = [reading_turn(n, f"sets limit_of_{n} " + f"plain words {n} " * 200) for n in range(30)]
    result = {"type": "tool_result", "tool_use_id": "call-29", "content": "done"}
    answer = message("assistant", "Now I change limit_of_2, limit_of_4 and limit_of_6.", "a30")
    turns.append(turn(30, [message("user", [result], "u30"), answer]))
    session = make_session(project, turns, name="looks back")
    run = runs.run_create(
        project=project, sessions=[session], policies=[get_policy("baseline")], limits=[Limit(ratio=0.3)]
    )
    [row] = result_rows(finish(run))
    references = row.total.references
    assert references.found == references.searched == references.lost == 3
    assert row.found_share == 1


@pytest.mark.slow
def test_another_price_table_changes_the_cost_only(make: Callable[..., ReplayRun]) -> None:
    run = finish(make())
    dear = result_rows(run, prices=Prices.of_rates({"input": 1_000}))
    assert [row.total.references for row in dear] == [row.total.references for row in result_rows(run)]
    assert all(d.cost > row.cost > 0 for d, row in zip(dear, result_rows(run), strict=True))


@pytest.mark.slow
def test_another_price_table_bills_writes_as_the_session_did(
    project: Project, make: Callable[..., ReplayRun]
) -> None:
    """Also if its own model has no price."""
    turns = [
        replace(reading_turn(n), model="own", usage=Usage(uncached_tokens=3_000 + n, output_tokens=1))
        for n in range(3)
    ]
    run = finish(make(sessions=[make_session(project, turns, name="own", model="own")]))
    assert result_rows(run)[0].total.cost is None
    row = result_rows(run, prices=Prices.of_rates({"input": 1, "write": 2}))[0]
    assert row.total.cost == row.total.cost_uncached == row.total.prompt_tokens


@pytest.mark.slow
def test_a_session_without_calls_costs_nothing(
    project: Project, session: AgentSession, make: Callable[..., ReplayRun]
) -> None:
    asked = turn(0, [message("user", "Find out what calls what.", "asked")])
    waiting = make_session(project, [asked], name="waits for the first answer")
    alone, both = finish(make(sessions=[session])), finish(make(sessions=[session, waiting]))
    for one, other in zip(result_rows(alone), result_rows(both), strict=True):
        assert (other.total.sessions, other.total.calls) == (2, one.total.calls)
        assert other.total.cost == one.total.cost > 0


@pytest.mark.slow
def test_a_slice_is_short_and_the_next_continues(
    make: Callable[..., ReplayRun], monkeypatch: pytest.MonkeyPatch, dispatched: list[tuple[str, str]]
) -> None:
    monkeypatch.setattr(execution, "SLICE_SECONDS", -1.0)
    run = make()
    for done in range(1, 6):
        execution.run_step(run_id=run.pk)
        run.refresh_from_db()
        assert (run.done, run.state, run.lease_until) == (done, ReplayRun.State.RUNNING, None)
        assert dispatched.count((STEP, str(run.pk))) == done + 1
    assert finish(run).state == ReplayRun.State.DONE


@pytest.mark.slow
def test_a_cancelled_run_keeps_its_results_and_can_be_resumed(make: Callable[..., ReplayRun]) -> None:
    run = make()
    runs.run_cancel(run=run)
    execution.run_step(run_id=run.pk)
    assert not ReplayResult.objects.exists()
    with pytest.raises(runs.WrongState):
        runs.run_cancel(run=run)
    runs.run_resume(run=run)
    run = finish(run)
    assert run.state == ReplayRun.State.DONE
    actions = AuditEvent.objects.order_by("at").values_list("action", flat=True)
    assert {"replay.created", "replay.cancelled", "replay.resumed"} <= set(actions)


def test_two_workers_do_not_share_a_run(make: Callable[..., ReplayRun]) -> None:
    run = make()
    ReplayRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() + timezone.timedelta(minutes=1))
    execution.run_step(run_id=run.pk)
    assert not ReplayResult.objects.exists()


@pytest.mark.slow
def test_the_sweep_dispatches_runs_without_a_worker(
    make: Callable[..., ReplayRun], dispatched: list[tuple[str, str]]
) -> None:
    run = make()
    assert execution.replays_sweep() == 1
    assert dispatched.count((STEP, str(run.pk))) == 2
    finish(run)
    assert execution.replays_sweep() == 0


@pytest.mark.slow
def test_custom_prices_of_the_time_of_creation_apply_to_all_results(
    project: Project, make: Callable[..., ReplayRun], session: AgentSession
) -> None:
    rate = {"uncached": 7_000_000, "cache_read": 7_000_000, "cache_write": 7_000_000, "output": 0}
    first = CustomPrice(model="claude-sonnet-4-5", first=date(2020, 1, 1), last=None, **rate)
    custom_price_set(project=project, price=first, actor=Actor())
    project.refresh_from_db()
    run = make(policies=[get_policy("off")])
    custom_price_set(project=project, price=replace(first, uncached=0, cache_read=0), actor=Actor())
    session.turns.update(cost_microusd=None)
    row = result_rows(finish(run))[0]
    assert row.total.cost == row.total.cost_uncached == 7 * row.total.prompt_tokens
    assert run.targets.get().actual_microusd == row.total.cost


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"policies": []}, "policies"),
        ({"limits": []}, "budgets"),
        ({"limits": [Limit(tokens=n) for n in range(1, 60)]}, "policies"),
    ],
)
def test_invalid_runs_are_rejected(
    make: Callable[..., ReplayRun], options: dict[str, object], field: str
) -> None:
    with pytest.raises(runs.InvalidRun) as refused:
        make(**options)
    assert refused.value.field == field


@pytest.mark.slow
def test_a_model_is_called_only_after_its_cost_was_confirmed(
    make: Callable[..., ReplayRun], provider: FakeProvider
) -> None:
    run = finish(make(with_model=True, policies=[get_policy("balanced")], limits=[Limit(ratio=0.1)]))
    assert run.state == ReplayRun.State.WAITING
    assert run.estimate_microusd
    assert not provider.requests
    runs.run_confirm(run=run)
    run = finish(run)
    assert run.state == ReplayRun.State.DONE
    assert provider.requests
    [row] = result_rows(run)
    assert row.summaries > 0
    assert row.valid_share == row.fits_share == 1


def test_the_newest_sessions_are_chosen_by_agent(project: Project, session: AgentSession) -> None:
    other = make_session(project, name="other", agent="writer")
    assert sessions_newest(project_id=project.pk, limit=9, agent="writer") == [other]
    assert len(sessions_newest(project_id=project.pk, limit=9)) == 2


def test_the_newest_sessions_leave_out_those_without_a_conversation(
    project: Project, session: AgentSession
) -> None:
    make_session(project, [reading_turn(0)], name="requests a title")
    reported = make_session(project, name="reported by telemetry")
    AgentSession.objects.filter(pk=reported.pk).update(message_count=0)
    assert sessions_newest(project_id=project.pk, limit=9) == [session]


@pytest.mark.slow
def test_custom_policies_are_stored_as_differences_from_their_preset(
    project: Project, make: Callable[..., ReplayRun], owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replay.selectors.advice.MIN_SESSIONS", 1)
    own = Policy.from_json({"preset": "balanced", "name": "deeper", "target": 0.3, "tail_messages": 2})
    run = finish(make(policies=[get_policy("off"), own], limits=[Limit(ratio=0.5)]))
    assert advice_apply(project=project, run_id=run.pk, setting=1, actor=Actor(user=owner)) == own
    project.refresh_from_db()
    expected = {"preset": "balanced", "name": "deeper", "target": 0.3, "tail_messages": 2}
    assert project.default_policy == expected
    assert Policy.from_json(expected) == own
