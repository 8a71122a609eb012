"""What was stored before rows became leaner, and what the migrations make of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import Project
from sessions.models import Turn
from tests.migrating import APP, migrate, migrated

BEFORE, EDITS, TURNS = "0019_memory_reading", "0020_edits_once", "0022_leaner_turns"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def before() -> Iterator[Any]:
    with migrated(BEFORE) as models:
        yield models


def test_the_prompt_base_takes_over_what_is_in_force(before: Any, project: Project) -> None:
    session = before.get_model(APP, "AgentSession").objects.create(
        project_id=project.pk, external_id="s", format="openai"
    )
    compaction = before.get_model(APP, "Compaction").objects.create(
        session=session, number=1, state="done", trigger="hard", turn_index=3, snapshot_position=8
    )
    before.get_model(APP, "PromptBase").objects.create(session=session, compaction_number=1, data=b"")
    edits = before.get_model(APP, "Edit")
    keys = [
        edits.objects.create(
            compaction=compaction,
            session=session,
            ordinal=ordinal,
            strategy="collapse",
            op="replace",
            position=ordinal,
            end=ordinal,
            tokens_before=9,
            tokens_after=1,
            is_live=ordinal != 1,
        ).pk
        for ordinal in range(3)
    ]
    after = migrate(EDITS)
    assert after.get_model(APP, "PromptBase").objects.get().edits == [keys[0], keys[2]]
    again = migrate(BEFORE)
    live = again.get_model(APP, "Edit").objects.filter(is_live=True)
    assert list(live.order_by("pk").values_list("pk", flat=True)) == [keys[0], keys[2]]


def test_components_become_numbers_and_objects_again(before: Any, project: Project) -> None:
    sizes = [{}, {"user": 5, "tool_outputs": 7}, {"system": 3, "recap": 4}, {"memory": 9}]
    session = before.get_model(APP, "AgentSession").objects.create(
        project_id=project.pk, external_id="s", format="openai"
    )
    for index, components in enumerate(sizes):
        before.get_model(APP, "Turn").objects.create(
            session=session,
            index=index,
            first_position=index,
            message_count=1,
            prompt_estimate=1,
            components=components,
        )
    migrate(TURNS)
    assert [turn.components for turn in Turn.objects.order_by("index")] == sizes
    again = migrate(BEFORE).get_model(APP, "Turn").objects
    assert list(again.order_by("index").values_list("components", flat=True)) == sizes
