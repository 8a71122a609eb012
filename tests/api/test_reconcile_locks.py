"""Clients that send their whole history while another request of theirs compacts the same session."""

from __future__ import annotations

import json
from functools import partial

import pytest

from sessions.models import AgentSession
from sessions.selectors.redaction import redaction_of
from sessions.services.reconcile.served import edits_for_request
from sessions.services.reconcile.values import Sent
from sessions.services.sessions.lifecycle import session_delete
from tests.api.client import Api
from tests.api.talk import History, history, reconcile, request, whole_turn
from tests.locking import blocking, waiting_for

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_fork_is_compacted_for_a_request_while_the_last_call_is_recorded(api: Api) -> None:
    """The recording locks the session that the client names, then the fork that the compaction has locked."""
    fields = {"id": "s1", "format": "anthropic", "budget": {"input_tokens": 3_000}}
    assert api.post("sessions/", fields).status_code == 201
    reconcile(api, history(2))
    rewound: History = history(1)
    occupancy, turn = 0.0, 50
    while occupancy < 0.85:
        rewound += whole_turn(turn)
        occupancy, turn = reconcile(api, rewound)["occupancy"], turn + 1
    root, fork = AgentSession.objects.order_by("pk")
    assert not fork.compaction_count
    body = json.dumps({"messages": [*rewound, request("Go on. " * 500)]}).encode()
    with blocking(partial(reconcile, api, [*rewound, *whole_turn(turn)])) as jobs:
        edits_for_request(
            root.pk, body, name="s1", sent=Sent(), redaction=redaction_of(root.project), field="messages"
        )
    assert jobs[0].result()["reconciled"]["session"] == str(fork.pk)
    fork.refresh_from_db()
    assert fork.compaction_count


def test_a_fork_is_deleted_while_a_history_is_compared_with_it(api: Api) -> None:
    assert api.post("sessions/", {"id": "s1"}).status_code == 201
    reconcile(api, history(3))
    reconcile(api, [*history(1), *whole_turn(50)])
    root, fork = AgentSession.objects.order_by("pk")
    send = partial(reconcile, api, [*history(1), *whole_turn(51)])
    with waiting_for("agent_sessions_message", send) as job:
        session_delete(session=fork)
    reconciled = job.result()["reconciled"]
    assert reconciled["status"] == "forked"
    assert reconciled["session"] not in {str(root.pk), str(fork.pk)}
