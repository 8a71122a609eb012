"""The sample replay: all presets on the longest sample sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from accounts.actors import Actor
from accounts.models import Project
from compaction.policy import PRESETS
from compaction.replay.setting import Limit
from replay.models import ReplayRun, ReplayTarget
from replay.services.runs import run_create
from sessions.models import AgentSession

#: Number of sessions to replay, and the budget as a share of the largest prompt.
_SESSIONS, _BUDGET = 3, 0.4


def sample_replay(*, project: Project, sessions: Sequence[AgentSession], user: User | None, **_: Any) -> None:
    """Start the replay of the longest sample sessions."""
    longest = sorted(sessions, key=lambda session: -session.turn_count)[:_SESSIONS]
    run_create(
        project=project,
        sessions=longest,
        policies=list(PRESETS.values()),
        limits=[Limit(ratio=_BUDGET)],
        title="Sample: all presets",
        actor=Actor(user=user),
    )


def sample_replays_delete(*, project: Project, sessions: Sequence[UUID], **_: Any) -> None:
    """Delete the replays that contain only sample sessions."""
    targets = ReplayTarget.objects.filter(run__project=project)
    others = targets.exclude(session__in=sessions).values("run")
    runs = targets.filter(session__in=sessions).exclude(run__in=others).values_list("run", flat=True)
    ReplayRun.objects.filter(pk__in=list(runs)).delete()
