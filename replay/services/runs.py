"""Replay runs: asked for, confirmed, cancelled, taken up again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services import audit_record
from compaction.policy import Policy
from compaction.replay import Limit
from replay.models import ReplayRun, ReplayTarget
from replay.selectors.settings import limit_json
from replay.services.dispatch import replay_dispatch
from sessions.models import AgentSession
from sessions.selectors.summarizers import summarizer_missing

#: More would keep workers from what agents wait for.
MAX_SESSIONS, MAX_SETTINGS = 200, 40

#: The states that somebody may ask for.
WANTED = [(state.value, state.label) for state in (ReplayRun.State.RUNNING, ReplayRun.State.CANCELLED)]


class RunRefused(ValueError):
    """The run cannot be; the text says why, `field` what of it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class WrongState(Exception):
    """The run is not where it could be confirmed, cancelled or taken up again."""


@transaction.atomic
def run_create(
    *,
    project: Project,
    sessions: Sequence[AgentSession],
    policies: Sequence[Policy],
    limits: Sequence[Limit],
    with_model: bool = False,
    title: str = "",
    actor: Actor = SYSTEM,
) -> ReplayRun:
    """A run that a worker takes up behind the commit. Raises `RunRefused`."""
    _check(project, sessions, policies, limits, with_model)
    estimated = ReplayRun.State.ESTIMATING if with_model else ReplayRun.State.RUNNING
    run = ReplayRun.objects.create(
        project=project,
        created_by=actor.user,
        title=title,
        state=estimated,
        policies=[policy.to_json() for policy in policies],
        limits=[limit_json(limit) for limit in limits],
        with_model=with_model,
        sessions=len(sessions),
        steps=len(sessions) * len(policies) * len(limits),
    )
    ReplayTarget.objects.bulk_create(
        ReplayTarget(run=run, session=session, ordinal=ordinal) for ordinal, session in enumerate(sessions)
    )
    _audit(run, "replay.created", actor, {"sessions": len(sessions), "with_model": with_model})
    transaction.on_commit(partial(replay_dispatch, run.pk))
    return run


def _check(
    project: Project,
    sessions: Sequence[AgentSession],
    policies: Sequence[Policy],
    limits: Sequence[Limit],
    with_model: bool,
) -> None:
    if not sessions:
        raise RunRefused("sessions", "no session with a turn was chosen")
    if len(sessions) > MAX_SESSIONS:
        raise RunRefused("sessions", f"at most {MAX_SESSIONS} sessions at once")
    if not policies:
        raise RunRefused("policies", "no policy was chosen")
    if len({policy.name for policy in policies}) < len(policies):
        raise RunRefused("policies", "two policies have the same name")
    if not limits:
        raise RunRefused("budgets", "no budget was chosen")
    if len(policies) * len(limits) > MAX_SETTINGS:
        raise RunRefused("policies", f"at most {MAX_SETTINGS} pairs of a policy and a budget")
    if with_model and (missing := summarizer_missing(project)):
        raise RunRefused("with_model", f"no model can summarise: {missing}")


@transaction.atomic
def run_confirm(*, run: ReplayRun, actor: Actor = SYSTEM) -> None:
    """Somebody has seen the estimate and wants it. Raises `WrongState`."""
    _move(run, (ReplayRun.State.WAITING,), ReplayRun.State.RUNNING)
    _audit(run, "replay.confirmed", actor, {"estimate_microusd": run.estimate_microusd})
    transaction.on_commit(partial(replay_dispatch, run.pk))


@transaction.atomic
def run_cancel(*, run: ReplayRun, actor: Actor = SYSTEM) -> None:
    """Ends a run; what it has found stays. Raises `WrongState`."""
    states = (*ReplayRun.OPEN, ReplayRun.State.WAITING)
    _move(run, states, ReplayRun.State.CANCELLED, finished_at=timezone.now())
    _audit(run, "replay.cancelled", actor, {"done": run.done})


@transaction.atomic
def run_resume(*, run: ReplayRun, actor: Actor = SYSTEM) -> None:
    """Goes on where a cancelled run stopped. Raises `WrongState`."""
    unknown = run.with_model and run.estimate_microusd is None
    state = ReplayRun.State.ESTIMATING if unknown else ReplayRun.State.RUNNING
    _move(run, (ReplayRun.State.CANCELLED,), state, finished_at=None)
    _audit(run, "replay.resumed", actor, {"done": run.done})
    transaction.on_commit(partial(replay_dispatch, run.pk))


def _move(run: ReplayRun, states: Sequence[str], state: str, **changes: Any) -> None:
    """Another state, if the run is in one of `states`. Whoever works on it finds that it lost its claim."""
    rows = ReplayRun.objects.filter(pk=run.pk, state__in=states)
    if rows.update(state=state, lease_until=None, **changes) != 1:
        raise WrongState(f"the replay is {run.get_state_display()}")
    run.refresh_from_db()


def _audit(run: ReplayRun, action: str, actor: Actor, detail: Mapping[str, Any]) -> None:
    audit_record(
        action=action,
        project=run.project,
        actor=actor,
        target=str(run.pk),
        detail=dict(detail),
    )
