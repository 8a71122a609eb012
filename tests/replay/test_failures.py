"""Replay runs whose worker dies, and sessions that cannot be replayed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from accounts.models import Project
from compaction.policy import get_policy
from compaction.replay.setting import Limit
from compaction.replay.transcript import Transcript
from replay.models import ReplayResult, ReplayRun
from replay.selectors.transcripts import session_transcript
from replay.services import execution
from sessions.models import AgentSession
from sessions.services.sessions.lifecycle import session_delete
from tests.pages.transcripts import make_session
from tests.provider.server import FakeProvider
from tests.replay.conftest import finish

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


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


@pytest.mark.parametrize("estimates", [False, True])
def test_a_session_that_kills_its_workers_is_given_up(
    project: Project,
    session: AgentSession,
    make: Callable[..., ReplayRun],
    monkeypatch: pytest.MonkeyPatch,
    provider: FakeProvider,
    estimates: bool,
) -> None:
    def read(chosen: AgentSession) -> Transcript:
        if chosen == session:
            raise SystemExit("out of memory")
        return session_transcript(chosen)

    monkeypatch.setattr(execution, "session_transcript", read)
    other = make_session(project, name="other")
    run = make(
        sessions=[session, other],
        policies=[get_policy("off")],
        limits=[Limit(ratio=1.0)],
        with_model=estimates,
    )
    for _ in range(execution.MAX_STALLS):
        with pytest.raises(SystemExit):
            execution.run_step(run_id=run.pk)
        ReplayRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timezone.timedelta(seconds=1))
    run = finish(run)
    assert run.state == (ReplayRun.State.WAITING if estimates else ReplayRun.State.DONE)
    first, second = run.targets.order_by("ordinal")
    assert "4 times" in first.error
    assert not second.error
    assert second.results.count() == (0 if estimates else 1)


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
