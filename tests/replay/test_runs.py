"""Replay runs: create, execute in slices, cancel, resume, confirm."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from accounts.actors import Actor
from accounts.models import AuditEvent, Project
from compaction.policy import Policy, get_policy
from compaction.replay.prices import Prices
from compaction.replay.setting import Limit
from compaction.replay.transcript import Transcript
from replay.models import ReplayResult, ReplayRun
from replay.selectors.results import result_rows, sessions_newest, target_results
from replay.selectors.transcripts import session_transcript
from replay.services import execution, runs
from replay.services.advice import advice_apply
from sessions.models import AgentSession
from sessions.services.sessions.lifecycle import session_delete
from tests.pages.transcripts import make_session, message, reading_turn, turn
from tests.provider.behaviours import summary
from tests.provider.server import FakeProvider

pytestmark = pytest.mark.django_db

POLICIES = [get_policy("off"), get_policy("balanced"), get_policy("baseline")]
LIMITS = [Limit(ratio=1.0), Limit(ratio=0.5)]


@pytest.fixture
def make(
    project: Project,
    session: AgentSession,
    sent: list[object],
    django_capture_on_commit_callbacks: Callable[..., object],
) -> Callable[..., ReplayRun]:
    def made(**options: object) -> ReplayRun:
        given = {"sessions": [session], "policies": POLICIES, "limits": LIMITS} | options
        with django_capture_on_commit_callbacks(execute=True):
            return runs.run_create(project=project, **given)

    return made


def finish(run: ReplayRun) -> ReplayRun:
    for _ in range(50):
        run.refresh_from_db()
        if run.state not in ReplayRun.OPEN:
            return run
        execution.run_step(run_id=run.pk)
    raise AssertionError("the run does not end")


def test_the_sizes_of_prompts_that_contextapp_served_are_read(session: AgentSession) -> None:
    index = session_transcript(session).calls[-1].turn
    session.turns.filter(index=index).update(prompt_served=7)
    stored = session_transcript(session)
    assert stored.sent(stored.calls[-1]) == 7 < stored.size(stored.calls[-1])
    assert stored.sent(stored.calls[0]) == stored.size(stored.calls[0])


def test_a_report_is_that_of_the_whole_prompt_if_the_agent_sent_it(session: AgentSession) -> None:
    """For example in compact mode, while the gateway forwarded requests unchanged."""
    last = session.turns.order_by("-index")[0]
    whole, calibration = last.prompt_estimate, {"calibration_factor": 1.2, "calibration_overhead": 900}
    for sent in (whole, whole // 4):
        reported = round(1.2 * sent) + 900
        session.turns.filter(index=last.index).update(
            prompt_served=whole // 4, prompt_reported=reported, **calibration
        )
        stored = session_transcript(session)
        assert stored.sent(stored.calls[-1]) == sent


def test_off_has_the_stored_sizes(session: AgentSession) -> None:
    transcript = session_transcript(session)
    stored = list(session.turns.order_by("index").values_list("prompt_estimate", flat=True))
    assert [transcript.size(call) for call in transcript.calls] == stored


@pytest.mark.slow
def test_a_run_is_executed(make: Callable[..., ReplayRun], sent: list[object]) -> None:
    run = finish(make())
    assert sent[0] == run.pk
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
def test_lost_references_are_searched_for(project: Project, sent: list[object]) -> None:
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
def test_a_slice_is_short_and_the_next_continues(
    make: Callable[..., ReplayRun], monkeypatch: pytest.MonkeyPatch, sent: list[object]
) -> None:
    monkeypatch.setattr(execution, "SLICE_SECONDS", -1.0)
    run = make()
    for done in range(1, 6):
        execution.run_step(run_id=run.pk)
        run.refresh_from_db()
        assert (run.done, run.state, run.lease_until) == (done, ReplayRun.State.RUNNING, None)
        assert len(sent) == done + 1
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


@pytest.mark.slow
def test_results_of_a_dead_worker_are_kept(make: Callable[..., ReplayRun]) -> None:
    run = finish(make())
    kept = ReplayResult.objects.order_by("setting").first()
    ReplayResult.objects.exclude(pk=kept.pk).delete()
    run.targets.update(finished_at=None)
    ReplayRun.objects.filter(pk=run.pk).update(
        state="running", done=1, lease_until=timezone.now() - timezone.timedelta(seconds=1)
    )
    run = finish(run)
    assert run.done == 6
    assert ReplayResult.objects.filter(pk=kept.pk).exists()


def test_two_workers_do_not_share_a_run(make: Callable[..., ReplayRun]) -> None:
    run = make()
    ReplayRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() + timezone.timedelta(minutes=1))
    execution.run_step(run_id=run.pk)
    assert not ReplayResult.objects.exists()


@pytest.mark.slow
def test_the_sweep_dispatches_runs_without_a_worker(
    make: Callable[..., ReplayRun], sent: list[object]
) -> None:
    run = make()
    sent.clear()
    assert execution.replays_sweep() == 1
    assert sent == [run.pk]
    finish(run)
    assert execution.replays_sweep() == 0


@pytest.mark.slow
def test_a_session_that_cannot_be_replayed_does_not_hold_up_the_others(
    project: Project, session: AgentSession, make: Callable[..., ReplayRun]
) -> None:
    broken = make_session(project, name="broken")
    broken.messages.filter(position=0).update(body=b"not json")
    run = finish(make(sessions=[broken, session]))
    assert run.state == ReplayRun.State.DONE
    first, second = run.targets.order_by("ordinal")
    assert first.error
    assert not second.error
    assert second.results.count() == 6


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


@pytest.fixture
def provider(settings: object) -> Iterator[FakeProvider]:
    with FakeProvider() as provider:
        provider.otherwise = summary()
        settings.CONTEXTAPP_ANTHROPIC_API_KEY = "key of the tests"
        settings.CONTEXTAPP_ANTHROPIC_BASE_URL = provider.url
        yield provider


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


@pytest.mark.slow
def test_a_session_that_is_deleted_during_its_replay_is_left_out(
    project: Project, session: AgentSession, make: Callable[..., ReplayRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(chosen: AgentSession) -> Transcript:
        if chosen == session:
            session_delete(session=chosen)
            raise AgentSession.DoesNotExist
        return session_transcript(chosen)

    monkeypatch.setattr(execution, "session_transcript", read)
    other = make_session(project, name="other")
    run = finish(make(sessions=[session, other], policies=[get_policy("off")], limits=[Limit(ratio=1.0)]))
    assert run.state == ReplayRun.State.DONE
    assert [target.session for target in run.targets.filter(error="")] == [other]


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
