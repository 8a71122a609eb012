"""Every recorded name that a page shows has a tooltip."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from accounts.models import Project
from compaction.policy import PRESETS, Policy
from compaction.strategies import STRATEGIES
from compaction.triggers import TRIGGERS
from compaction.view import VERBATIM
from sessions.models import AgentSession, Compaction
from sessions.pages import terms
from sessions.services.compactions.lifecycle import compaction_open


@pytest.mark.parametrize(
    ("names", "meaning"),
    [
        (PRESETS, terms.preset_meaning),
        ([*STRATEGIES, VERBATIM], terms.rule_meaning),
        (TRIGGERS, terms.trigger_meaning),
    ],
    ids=["presets", "strategies", "triggers"],
)
def test_every_recorded_name_has_a_tooltip(names: Iterable[str], meaning: Callable[[str], str]) -> None:
    assert [name for name in names if not meaning(name)] == []


@pytest.mark.django_db
def test_a_compaction_without_a_registered_trigger_cannot_be_recorded(project: Project) -> None:
    session = AgentSession.objects.create(project=project, external_id="s-1", format="openai")
    with pytest.raises(KeyError):
        compaction_open(session=session, trigger="moon", state=Compaction.State.SKIPPED, policy=Policy())
