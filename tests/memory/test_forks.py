"""A fork continues the working memory of its parent: its shared turns are not read again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from accounts.models import Project
from sessions.models import AgentSession, MemoryExtraction
from sessions.selectors import summarizers
from sessions.services.memory.auto_updates import memory_update
from sessions.services.memory.extraction import extraction_run
from tests.api.client import Api
from tests.compaction.builders import assistant, call, result, user
from tests.memory.test_extraction_tasks import LONG, MODEL, rest
from tests.provider.behaviours import operation, operations
from tests.provider.server import FakeProvider

pytestmark = pytest.mark.django_db

FAILS = "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed"
SHARED = [
    user("Mend the pool."),
    call("c0", "bash", command="pytest"),
    result("c0", FAILS),
    assistant(LONG),
]


@pytest.fixture
def provider(settings: Any) -> Iterator[FakeProvider]:
    with FakeProvider(otherwise=operations(operation("add", "the pool is a queue"))) as provider:
        settings.CONTEXTAPP_ANTHROPIC_API_KEY = "key of the tests"
        settings.CONTEXTAPP_ANTHROPIC_BASE_URL = provider.url
        summarizers.reader.cache_clear()
        yield provider
        summarizers.reader.cache_clear()


@pytest.fixture
def parent(api: Api, project: Project) -> UUID:
    Project.objects.filter(pk=project.pk).update(memory_upkeep=True, memory_model=MODEL)
    api.post("sessions/", {"id": "parent", "format": "openai"})
    return reconcile(api, [*SHARED, user("Go on.")])


def reconcile(api: Api, messages: list[Any]) -> UUID:
    answer = api.post("sessions/parent/reconcile/", {"messages": messages})
    assert answer.status_code == 200, answer.content
    return UUID(answer.json()["reconciled"]["session"])


def forked(api: Api, parent: UUID) -> UUID:
    """Rewind to the first answer."""
    reconcile(api, [*SHARED, user("Go on."), assistant("I do.")])
    child = reconcile(api, [*SHARED, user("Rather stop.")])
    assert child != parent
    return child


def memory(api: Api, session: UUID) -> dict[str, Any]:
    shown: dict[str, Any] = api.get(f"sessions/{session}/memory/").json()["memory"]
    return shown


@pytest.mark.slow
def test_removed_items_are_not_restored(api: Api, parent: UUID) -> None:
    memory_update(session_id=parent)
    assert memory(api, parent)["blockers"]
    api.patch(f"sessions/{parent}/memory/?author=person", {"blockers": []}, if_match="*")
    memory_update(session_id=parent)
    assert not memory(api, parent)["blockers"]
    child = forked(api, parent)
    memory_update(session_id=child)
    assert not memory(api, child)["blockers"]


@pytest.mark.slow  # Anthropic's SDK takes seconds to load
def test_the_model_does_not_read_shared_turns_again(api: Api, parent: UUID, provider: FakeProvider) -> None:
    memory_update(session_id=parent)
    rest(parent)
    assert extraction_run(session_id=parent)
    child = forked(api, parent)
    assert memory(api, child)["decisions"] == ["the pool is a queue"]
    memory_update(session_id=child)
    rest(child)
    extraction_run(session_id=child)
    spans = MemoryExtraction.objects.filter(session=child).values_list("first_turn", "end_turn")
    assert AgentSession.objects.get(pk=child).turn_count == 2
    assert list(spans) == [(1, 2)]
