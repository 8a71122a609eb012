"""A session to replay, without workers."""

from __future__ import annotations

import pytest

from accounts.models import Project
from replay.services import execution, runs
from sessions.models import AgentSession
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused


@reused
def session(project: Project) -> AgentSession:
    turns = [reading_turn(n, f"leads to f{n}.py " + f"plain words {n} " * 200) for n in range(30)]
    return make_session(project, turns, name="long", title="A long one")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The runs that were dispatched; no worker receives them."""
    found: list[object] = []
    collect_dispatched(monkeypatch, found)
    return found


def collect_dispatched(monkeypatch: pytest.MonkeyPatch, found: list[object]) -> None:
    for module in (runs, execution):
        monkeypatch.setattr(module, "task_dispatch", lambda task, id: not found.append(id))
