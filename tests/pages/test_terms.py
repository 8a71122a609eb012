"""Every recorded name that a page shows has a tooltip."""

from __future__ import annotations

import pytest

from accounts.models import Project
from compaction.policy import PRESETS, Policy
from compaction.strategies import STRATEGIES
from compaction.triggers import TRIGGERS
from compaction.view import VERBATIM
from sessions.models import AgentSession, Compaction
from sessions.pages import terms
from sessions.services.compactions.lifecycle import compaction_open


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_tooltip(name: str) -> None:
    assert terms.preset_meaning(name)


@pytest.mark.parametrize("name", [*STRATEGIES, VERBATIM])
def test_every_strategy_has_a_tooltip(name: str) -> None:
    assert terms.rule_meaning(name)


@pytest.mark.parametrize("name", TRIGGERS)
def test_every_trigger_has_a_tooltip(name: str) -> None:
    assert terms.trigger_meaning(name)


@pytest.mark.parametrize("name", [*Compaction.State.values, "preview"])
def test_every_state_has_a_tooltip(name: str) -> None:
    assert terms.state_meaning(name)


@pytest.mark.django_db
def test_a_compaction_without_a_registered_trigger_cannot_be_recorded(project: Project) -> None:
    session = AgentSession.objects.create(project=project, external_id="s-1", format="openai")
    with pytest.raises(KeyError):
        compaction_open(session=session, trigger="moon", state=Compaction.State.SKIPPED, policy=Policy())
