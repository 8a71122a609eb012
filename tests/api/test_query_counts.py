"""Push and fetch take the same few statements at turn 2 and at turn 300, and lists for any number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from accounts.models import Project
from sessions.models import SharedFact
from tests.api.client import Api
from tests.api.statements import statements
from tests.api.talk import TURNS, push, whole_turn

pytestmark = pytest.mark.django_db

#: Turns at which statements are counted.
AT = (2, 50, 300)

#: A session that never compacts, and one that does every few turns.
QUIET: dict[str, Any] = {"id": "s1", "policy": {"preset": "off"}}
COMPACTING: dict[str, Any] = {"id": "s1", "budget": {"input_tokens": 3_000}}


def own(found: Sequence[str]) -> int:
    """Count the queries without those of the test's own transaction."""
    return sum(not sql.startswith(("SAVEPOINT", "RELEASE")) for sql in found)


@pytest.mark.slow
@pytest.mark.parametrize("session", [QUIET, COMPACTING], ids=["without compactions", "with compactions"])
def test_push_and_fetch_take_constant_statements(api: Api, session: dict[str, Any]) -> None:
    api.post("sessions/", session)
    pushes, fetches, pasts = {}, {}, {}
    at = 0
    for turn in AT:
        while at < turn:
            push(api, whole_turn(at, lines=10))
            at += 1
        counts: list[tuple[int, int]] = []
        while len(counts) < 3:  # one may also check the API key again, which happens every few seconds
            fired: list[Any] = []
            pushed = own(statements(lambda: fired.extend(push(api, whole_turn(at, lines=10))["fired"])))  # noqa: B023
            at += 1
            if not fired:  # a push that compacts takes more statements, but their number does not grow
                counts.append((pushed, own(statements(lambda: api.get("sessions/s1/prompt/?manifest=1")))))
        pushes[turn], fetches[turn] = map(min, zip(*counts, strict=True))
        pasts[turn] = own(statements(lambda: api.get("sessions/s1/prompt/?at_turn=1")))
    assert bool(api.get("sessions/s1/compactions/").json()["data"]) == (session is COMPACTING)
    assert set(pushes.values()) <= {1, 2, 3}
    assert set(fetches.values()) <= {1, 2, 3}
    assert len(set(pushes.values())) == len(set(fetches.values())) == 1
    assert max(pasts.values()) <= 9


@pytest.mark.slow
def test_a_push_that_compacts_takes_constant_statements(api: Api) -> None:
    api.post("sessions/", COMPACTING)
    counts = []
    for number in range(120):
        fired: list[Any] = []
        found = own(statements(lambda: fired.extend(push(api, whole_turn(number, lines=10))["fired"])))  # noqa: B023
        if any(firing["state"] == "done" for firing in fired):
            counts.append(found)
    assert len(counts) >= 10
    assert max(counts) <= 25
    assert max(counts[len(counts) // 2 :]) <= max(counts[: len(counts) // 2]) + 2


def test_creating_a_session_reads_no_offered_facts(api: Api, project: Project) -> None:
    api.post("sessions/", {"id": "the key is known"})
    made = []
    for facts in (0, 60):
        SharedFact.objects.bulk_create(
            SharedFact(
                project=project,
                state="accepted",
                text=text,
                digest=text.encode(),
                proposed_digest=text.encode(),
            )
            for text in (f"fact {number}" for number in range(facts))
        )
        answers: list[Any] = []
        body = {"id": f"beside {facts}"}
        found = statements(lambda: answers.append(api.post("sessions/", body)))  # noqa: B023
        assert answers[0].json()["offers"] == facts
        assert not any('"agent_sessions_factobservation"' in sql for sql in found)
        made.append(own(found))
    assert made[0] == made[1] <= 6


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3, 40])
def test_lists_take_constant_statements(api: Api, rows: int) -> None:
    for number in range(rows):
        api.post("sessions/", {"id": f"s{number}"})
        push(api, whole_turn(number, lines=1), session=f"s{number}")
        push(api, whole_turn(number + 100, lines=1), session="s0")
    assert own(statements(lambda: api.get("sessions/?limit=200"))) <= 3
    assert own(statements(lambda: api.get(f"{TURNS.replace('s1', 's0')}?limit=200"))) <= 5
    assert own(statements(lambda: api.get("sessions/s0/compactions/"))) <= 4
