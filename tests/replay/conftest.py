"""A session to replay, without workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from accounts.models import Project
from compaction.policy import get_policy
from compaction.replay.setting import Limit
from replay.models import ReplayRun
from replay.services import execution, runs
from sessions.models import AgentSession
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused
from tests.provider.behaviours import summary
from tests.provider.server import FakeProvider

POLICIES = [get_policy("off"), get_policy("balanced"), get_policy("baseline")]
LIMITS = [Limit(ratio=1.0), Limit(ratio=0.5)]


@reused
def session(project: Project) -> AgentSession:
    turns = [reading_turn(n, f"leads to f{n}.py " + f"plain words {n} " * 200) for n in range(30)]
    return make_session(project, turns, name="long", title="A long one")


@pytest.fixture
def make(
    project: Project,
    session: AgentSession,
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


@pytest.fixture
def provider(settings: object) -> Iterator[FakeProvider]:
    with FakeProvider() as provider:
        provider.otherwise = summary()
        settings.CONTEXTAPP_ANTHROPIC_API_KEY = "key of the tests"
        settings.CONTEXTAPP_ANTHROPIC_BASE_URL = provider.url
        yield provider
