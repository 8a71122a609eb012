"""Writers of a session and its sub-agents or forks at the same time, none of which may be canceled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import pytest
from django.db import transaction

from accounts.models import Project
from importers.base import ImportedMessage, ImportedSession, ImportedTurn
from sessions.models import AgentSession, ImportedLog
from sessions.models.session import GATEWAY
from sessions.services.imports.logs import log_remember
from sessions.services.imports.store import session_import
from sessions.services.sessions.lifecycle import session_delete
from tests.api.client import Api
from tests.api.talk import History, history, push, reconcile, request, whole_turn
from tests.background.world import eventually
from tests.locking import blocking, in_thread, waiting
from tests.telemetry.events import SESSION, call, send

pytestmark = pytest.mark.django_db(transaction=True)

BUDGET = {"input_tokens": 3_000}


def child_create(api: Api, name: str, parent: str) -> AgentSession:
    """Create a session whose next push triggers a compaction of its whole prompt."""
    assert api.post("sessions/", {"id": parent, "format": "anthropic"}).status_code == 201
    fields = {"id": name, "parent": parent, "format": "anthropic", "budget": BUDGET}
    assert api.post("sessions/", fields).status_code == 201
    push(api, [*whole_turn(0), *whole_turn(1)], session=name)
    return AgentSession.objects.get(external_id=name)


def compacted_while(api: Api, child: AgentSession, work: Callable[[], object]) -> None:
    """Push a turn that compacts the session, and commit it once `work` waits for it."""
    with blocking(work) as jobs:
        pushed = push(api, [*whole_turn(2), *whole_turn(3), *whole_turn(4)], session=str(child.pk))
        assert [fired["state"] for fired in pushed["fired"]] == ["done"]
    jobs[0].result()


def sub_agent_log() -> ImportedSession:
    message = ImportedMessage(body=request(), source_id="1")
    return ImportedSession(
        external_id="sub",
        parent_external_id="main",
        format="anthropic",
        agent="claude-code",
        title="Read the files",
        turns=[ImportedTurn(messages=[message], at=datetime.now(UTC))],
    )


def test_a_sub_agent_is_compacted_while_its_log_is_imported(api: Api, project: Project) -> None:
    child = child_create(api, "sub", "main")
    AgentSession.objects.filter(pk=child.pk).update(origin=GATEWAY)
    compacted_while(api, child, partial(session_import, project=project, imported=sub_agent_log()))
    child.refresh_from_db()
    assert (child.compaction_count, child.title) == (1, "Read the files")


def test_a_sub_agent_is_compacted_while_its_telemetry_arrives(api: Api, api_key: str) -> None:
    child = child_create(api, f"{SESSION}:explore", SESSION)
    compacted_while(api, child, partial(send, api_key, call("r1", query_source="agent:explore")))
    child.refresh_from_db()
    assert (child.compaction_count, child.turn_count) == (1, 3)


def test_a_fork_is_compacted_while_its_history_is_continued(api: Api) -> None:
    fields = {"id": "s1", "format": "anthropic", "budget": BUDGET}
    assert api.post("sessions/", fields).status_code == 201
    reconcile(api, history(2))
    rewound: History = [*history(1), *whole_turn(50), *whole_turn(51)]
    reconcile(api, rewound)
    fork = AgentSession.objects.get(parent__isnull=False)
    compacted_while(api, fork, partial(reconcile, api, [*rewound, *whole_turn(52)]))
    fork.refresh_from_db()
    assert fork.compaction_count


def test_a_sub_agent_is_compacted_while_its_parent_is_deleted(api: Api) -> None:
    child = child_create(api, "sub", "main")
    parent = AgentSession.objects.get(external_id="main")
    compacted_while(api, child, partial(session_delete, session=parent))
    child.refresh_from_db()
    assert (child.compaction_count, child.parent_id) == (1, None)


def test_a_log_is_remembered_while_its_sub_agent_is_recorded(api: Api, project: Project) -> None:
    """The sub-agent was stored before its parent, so its id is smaller."""
    api.post("sessions/", {"id": "sub", "format": "anthropic"})
    api.post("sessions/", {"id": "main", "format": "anthropic"})
    child, parent = AgentSession.objects.order_by("pk")
    AgentSession.objects.filter(pk=child.pk).update(parent=parent)
    rows = AgentSession.objects.select_for_update()
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        rows.get(pk=parent.pk)
        job = pool.submit(in_thread, partial(log_remember, b"digest", [child.pk, parent.pk]))
        eventually(lambda: waiting() == 1)
        rows.get(pk=child.pk)
    job.result()
    assert ImportedLog.objects.count() == 2


def test_a_log_of_a_sub_agent_is_imported_while_its_parent_is_deleted(api: Api, project: Project) -> None:
    api.post("sessions/", {"id": "main", "format": "anthropic"})
    with blocking(partial(session_import, project=project, imported=sub_agent_log())) as jobs:
        session_delete(session=AgentSession.objects.get())
    assert jobs[0].result().created
    assert AgentSession.objects.get().external_id == "sub"
