"""Create, confirm, cancel and resume replay runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services.audit import audit_record
from compaction.policy import Policy
from compaction.replay.setting import Limit
from redaction import redact
from replay.models import ReplayRun, ReplayTarget
from replay.selectors.run_settings import limit_json
from replay.services.execution import STEP
from sessions.models import AgentSession
from sessions.selectors.custom_prices import custom_prices
from sessions.selectors.redaction import redaction_of
from sessions.selectors.summarizers import summarizer_missing
from sessions.services.commits import after_commit
from sessions.services.dispatch import task_dispatch

#: Limits of one run. Larger runs would delay compactions.
MAX_SESSIONS, MAX_SETTINGS = 200, 40

#: The states that users can request.
REQUESTABLE = [(state.value, state.label) for state in (ReplayRun.State.RUNNING, ReplayRun.State.CANCELLED)]


class InvalidRun(ValueError):
    """The run is invalid. `field` names the invalid parameter."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class WrongState(Exception):
    """The run cannot be confirmed, cancelled or resumed in its state."""


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
    """Create a run; a worker starts it after the commit. Raises `InvalidRun`."""
    _check(project, sessions, policies, limits, with_model)
    state = ReplayRun.State.ESTIMATING if with_model else ReplayRun.State.RUNNING
    run = ReplayRun.objects.create(
        project=project,
        created_by=actor.user,
        title=redact(title, redaction=redaction_of(project))[0],
        state=state,
        policies=[policy.to_json() for policy in policies],
        limits=[limit_json(limit) for limit in limits],
        custom_prices=[price.to_json() for price in custom_prices(project)],
        with_model=with_model,
        sessions=len(sessions),
        steps=len(sessions) * len(policies) * len(limits),
    )
    ReplayTarget.objects.bulk_create(
        ReplayTarget(run=run, session=session, ordinal=ordinal) for ordinal, session in enumerate(sessions)
    )
    _audit(run, "replay.created", actor, {"sessions": len(sessions), "with_model": with_model})
    after_commit(task_dispatch, STEP, run.pk)
    return run


def _check(
    project: Project,
    sessions: Sequence[AgentSession],
    policies: Sequence[Policy],
    limits: Sequence[Limit],
    with_model: bool,
) -> None:
    if not sessions:
        raise InvalidRun("sessions", "no session with a turn was selected")
    if len(sessions) > MAX_SESSIONS:
        raise InvalidRun("sessions", f"at most {MAX_SESSIONS} sessions")
    if not policies:
        raise InvalidRun("policies", "no policy was selected")
    if len({policy.name for policy in policies}) < len(policies):
        raise InvalidRun("policies", "two policies have the same name")
    if not limits:
        raise InvalidRun("budgets", "no budget was selected")
    if len(policies) * len(limits) > MAX_SETTINGS:
        raise InvalidRun("policies", f"at most {MAX_SETTINGS} combinations of policy and budget")
    if with_model and (missing := summarizer_missing(project)):
        raise InvalidRun("with_model", f"no model is available for summaries: {missing}")


@transaction.atomic
def run_confirm(*, run: ReplayRun, actor: Actor = SYSTEM) -> None:
    """Start a run whose estimate was accepted. Raises `WrongState`."""
    _change_state(run, (ReplayRun.State.WAITING,), ReplayRun.State.RUNNING)
    _audit(run, "replay.confirmed", actor, {"estimate_microusd": run.estimate_microusd})
    after_commit(task_dispatch, STEP, run.pk)


@transaction.atomic
def run_cancel(*, run: ReplayRun, actor: Actor = SYSTEM) -> None:
    """Cancel a run and keep its results so far. Raises `WrongState`."""
    states = (*ReplayRun.OPEN, ReplayRun.State.WAITING)
    _change_state(run, states, ReplayRun.State.CANCELLED, finished_at=timezone.now())
    _audit(run, "replay.cancelled", actor, {"done": run.done})


@transaction.atomic
def run_resume(*, run: ReplayRun, actor: Actor = SYSTEM) -> None:
    """Continue a cancelled run. Raises `WrongState`."""
    needs_estimate = run.with_model and run.estimate_microusd is None
    state = ReplayRun.State.ESTIMATING if needs_estimate else ReplayRun.State.RUNNING
    _change_state(run, (ReplayRun.State.CANCELLED,), state, finished_at=None)
    _audit(run, "replay.resumed", actor, {"done": run.done})
    after_commit(task_dispatch, STEP, run.pk)


def _change_state(run: ReplayRun, states: Sequence[str], state: str, **changes: Any) -> None:
    """Change the state of a run if it is in one of `states`. A worker that has claimed it loses the claim."""
    rows = ReplayRun.objects.filter(pk=run.pk, state__in=states)
    if rows.update(state=state, lease_until=None, **changes) != 1:
        raise WrongState(f"the replay is {run.get_state_display().lower()}")
    run.refresh_from_db()


def _audit(run: ReplayRun, action: str, actor: Actor, detail: Mapping[str, Any]) -> None:
    audit_record(
        action=action,
        project=run.project,
        actor=actor,
        target=str(run.pk),
        detail=dict(detail),
    )
