"""Hard compactions prepared before the push that triggers them, compared with unprepared ones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from accounts.models import Project
from compaction.sizes.breakdown import TokenBreakdown
from sessions.models import AgentSession, Compaction, Edit, Recap
from sessions.selectors.lookups import route_forget
from sessions.services.compactions import preparation
from sessions.services.compactions.planning import view_load
from sessions.services.compactions.preparation import preparations
from sessions.services.sessions.lifecycle import session_delete
from sessions.services.webhooks.subscriptions import webhook_create
from tests.api.client import Api
from tests.api.statements import statements
from tests.api.talk import answer, call, output, push, request, result
from tests.background.world import eventually

# Real commits: the thread that prepares compactions has its own connection.
pytestmark = pytest.mark.django_db(transaction=True)

BUDGET = 4_000

#: Handles depend on the id of the session.
ID = UUID(int=7)

Ready = Callable[[int], bool]


@pytest.fixture
def thread() -> Iterator[None]:
    preparations.start()
    yield
    preparations.stop()


def session_create(api: Api, **fields: Any) -> None:
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": BUDGET}, **fields})
    AgentSession.objects.update(id=ID)
    route_forget(project_id=AgentSession.objects.get().project_id, name="s1")


def turn(number: int, chance: random.Random) -> dict[str, Any]:
    """Return a turn whose output size varies widely, with the usage of its prompt."""
    name = f"toolu_{number:05}"
    text = output(number, lines=int(chance.lognormvariate(2.5, 0.8)) + 1)
    messages = [call(name, path=f"src/file_{number % 7}.py"), result(name, text)]
    if number % 5 == 0:
        messages.insert(0, request(f"Please read file {number}."))
    return {"messages": messages, "usage": {"input_tokens": 900 + 40 * number}, "model": "claude-sonnet-4-5"}


def wait_until_ready() -> None:
    """Wait until the compaction of the session's boundary is prepared."""
    boundary = AgentSession.objects.values_list("plan_turn", flat=True).get(pk=ID)
    if boundary is not None:
        if preparations.ready(ID, boundary) is None:
            preparations.request(ID, boundary)  # as if the thread had been busy since the boundary
        eventually(lambda: preparations.ready(ID, boundary))


def history(api: Api, *, turns: int, ready: Ready) -> tuple[list[Any], int]:
    """Push turns, with compactions prepared where `ready` is set.

    Return everything served and recorded, and how often a prepared compaction was applied.
    """
    session_create(api)
    chance, served, applied = random.Random(5), [], 0
    for number in range(turns):
        if ready(number):
            wait_until_ready()
        else:
            preparations.forget(ID)
        boundary = AgentSession.objects.values_list("plan_turn", flat=True).get(pk=ID)
        is_ready = boundary is not None and preparations.ready(ID, boundary) is not None
        response = api.post("sessions/s1/turns/", turn(number, chance))
        assert response.status_code == 201
        applied += bool(response.json()["fired"]) and is_ready
        served += [response.content, api.get("sessions/s1/prompt/?manifest=1").content]
    served += [api.get(f"sessions/s1/prompt/?at_turn={number}").content for number in range(0, turns, 7)]
    served += [
        {name: value for name, value in row.items() if name not in {"id", "policy"} and "_at" not in name}
        for row in Compaction.objects.order_by("number").values()
    ]
    for row in served:
        if isinstance(row, dict):
            row["details"].pop("duration_ms")
    edits = Edit.objects.order_by("compaction__number", "ordinal")
    served += [
        {name: value for name, value in row.items() if name not in {"id", "compaction_id", "bases"}}
        for row in edits.values()
    ]
    served += map(bytes, Recap.objects.order_by("compaction__number").values_list("lines", flat=True))
    session_delete(session=AgentSession.objects.get())
    return served, applied


@pytest.mark.slow
def test_prompts_and_records_do_not_depend_on_what_was_prepared(api: Api, thread: None) -> None:
    never, applied = history(api, turns=60, ready=lambda number: False)
    assert applied == 0
    always, applied = history(api, turns=60, ready=lambda number: True)
    assert applied >= 3
    assert always == never
    chance = random.Random(1)
    sometimes, _ = history(api, turns=60, ready=lambda number: chance.random() < 0.5)
    assert sometimes == never


def push_to_boundary(api: Api) -> int:
    """Push turns until the session has a boundary. Return the number of the next turn."""
    for number in range(100):
        api.post("sessions/s1/turns/", {"messages": small(number)})
        if AgentSession.objects.get(pk=ID).plan_turn is not None:
            return number + 1
    raise AssertionError("the prompt never came near the hard trigger")


def small(number: int) -> list[dict[str, Any]]:
    name = f"toolu_{number:05}"
    return [request(f"Read {number}."), call(name, path=f"src/{number}.py"), result(name, output(number, 9))]


def push_until_fired(api: Api, number: int) -> list[dict[str, Any]]:
    """Push turns until one compacts. Return its statements and the `fired` of its response."""
    for at in range(number, number + 20):
        fired = api.post("sessions/s1/turns/", {"messages": small(at)}).json()["fired"]
        if fired:
            return fired  # type: ignore[no-any-return]
    raise AssertionError("no push compacted")


@pytest.mark.parametrize("is_prepared", [False, True])
def test_the_last_answer_counts_as_new_although_it_was_pushed_before(
    api: Api, thread: None, is_prepared: bool
) -> None:
    session_create(api)
    number, fired = push_to_boundary(api), []
    while not fired:
        push(api, [answer("It defines handlers. " * 20)])
        if is_prepared:
            wait_until_ready()
        fired = push(api, [request(f"Check it {number}. {output(number, 9)}")])["fired"]
        number += 1
    record = Compaction.objects.get(session=ID).record
    newest = AgentSession.objects.get(pk=ID).messages.order_by("-position").values_list("tokens", flat=True)
    assert (fired[0]["trigger"], record["tokens_new"]) == ("hard", sum(newest[:2]))


@pytest.mark.slow
@pytest.mark.parametrize("has_webhook", [False, True])
def test_a_push_with_a_prepared_compaction_takes_one_statement(
    api: Api, thread: None, client: Client, project: Project, has_webhook: bool
) -> None:
    counted = _counted(client)
    if has_webhook:  # further statements write what it will send
        webhook_create(project=project, url="https://example.org/", events=["compaction.finished"])
    session_create(api)
    number = push_to_boundary(api)
    wait_until_ready()
    found: list[str] = []
    fired: list[Any] = []
    while not fired:
        found = statements(
            lambda: fired.extend(api.post("sessions/s1/turns/", {"messages": small(number)}).json()["fired"])  # noqa: B023
        )
        number += 1
    assert [(one["trigger"], one["state"], one["compaction"]) for one in fired] == [("hard", "done", 1)]
    assert (len(found) == 1) is not has_webhook
    assert _counted(client) == counted + 1
    shown = AgentSession.objects.get(pk=ID)
    assert shown.plan_turn is None
    assert shown.snapshot_end < shown.message_count
    prompt = api.get("sessions/s1/prompt/").json()
    assert prompt["occupancy"] < 0.7


def _counted(client: Client) -> float:
    """Return the number of hard compactions in the metrics."""
    text = client.get("/metrics").text
    found = re.search(
        r'^contextapp_compactions_total\{state="done",trigger="hard"\} (\S+)$', text, re.MULTILINE
    )
    return float(found[1]) if found else 0.0


def revert(api: Api) -> None:
    api.post("sessions/s1/compactions/1/revert/", {})


def pin(api: Api) -> None:
    assert api.call("PUT", "sessions/s1/messages/2/pin/").status_code == 200


def change_policy(api: Api) -> None:
    assert api.patch("sessions/s1/", {"policy": {"target": 0.2}}).status_code == 200


def compact(api: Api) -> None:
    assert api.post("sessions/s1/compact/", {}).status_code < 300


def write_memory(api: Api) -> None:
    written = api.patch("sessions/s1/memory/", {"task": "Port the parser."}, if_match="*")
    assert written.status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("change", [revert, pin, change_policy, compact, write_memory])
def test_a_change_after_the_preparation_makes_it_invalid(
    api: Api, thread: None, change: Callable[[Api], None]
) -> None:
    session_create(api)
    number = push_to_boundary(api)
    if change is revert:
        wait_until_ready()
        push_until_fired(api, number)
        number = 50 + push_to_boundary(api)
    wait_until_ready()
    stale = preparations.ready(ID, AgentSession.objects.get(pk=ID).plan_turn or 0)
    assert stale is not None
    change(api)
    fired = push_until_fired(api, 200)
    assert [one["state"] for one in fired] == ["done"]
    newest = Compaction.objects.order_by("-number").first()
    assert newest is not None
    if change is change_policy:
        assert newest.policy["target"] == 0.2
    if change is write_memory:
        assert "Port the parser." in api.get("sessions/s1/prompt/").content.decode()
    if change is pin:
        assert not Edit.objects.filter(position__lte=2, end__gte=2).exists()
    prompt = api.get("sessions/s1/prompt/").json()
    assert prompt["fits"] is True
    assert AgentSession.objects.get(pk=ID).plan_turn is None


@pytest.mark.slow
def test_a_failed_preparation_leaves_the_compaction_to_the_push(
    api: Api, thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(preparation, "compaction_prepare", fail)
    session_create(api)
    number = push_to_boundary(api)
    assert [one["state"] for one in push_until_fired(api, number)] == ["done"]


@pytest.mark.slow
def test_a_session_deleted_while_it_is_prepared(api: Api, thread: None) -> None:
    session_create(api)
    number = push_to_boundary(api)
    session_delete(session=AgentSession.objects.get())
    preparations.wait(ID, number - 1)
    assert api.post("sessions/s1/turns/", {"messages": small(number)}).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("words", [2, 900])
def test_a_prepared_compaction_is_applied_although_the_client_omits_messages(
    api: Api, thread: None, words: int
) -> None:
    """The client ends each request with a message that it sends only once. The plan may edit a long one."""
    session_create(api)
    said: list[dict[str, Any]] = []
    applied = 0
    for number in range(60):
        wait_until_ready()
        before = AgentSession.objects.get(pk=ID)
        prepared = preparations.ready(ID, before.plan_turn) if before.plan_turn is not None else None
        said += [request(f"Read file {number}: " + f"line {number} " * 40)]
        sent = [*said, request("Once only. " + "word " * words)]
        served = api.post("sessions/s1/reconcile/", {"messages": sent}).json()["messages"]
        session = AgentSession.objects.get(pk=ID)
        if prepared is not None and session.compaction_count > before.compaction_count:
            applied += session.snapshot_end == prepared.end
        said += [{"role": "assistant", "content": f"File {number} is empty."}]
        api.post("sessions/s1/turns/", {"messages": said[-1:]})
        session.refresh_from_db()
        assert sum("Once only" in str(message["content"]) for message in served) <= 1
        assert session.shown_components == TokenBreakdown.of_view(view_load(session).view).tokens
    assert applied >= (2 if words == 2 else 0)
