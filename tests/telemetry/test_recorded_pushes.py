"""Pushes of calls that the gateway or a log recorded before, however the pushes divide them into turns."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Project
from sessions.models import AgentSession
from tests.api.client import Api
from tests.telemetry import events
from tests.telemetry.events import SESSION
from tests.telemetry.test_one_call import ANSWERS, Sources, usage

pytestmark = pytest.mark.django_db

JSON = dict[str, Any]
NEW = {"role": "user", "content": "Something else"}


def question(number: int) -> JSON:
    return {"role": "user", "content": f"Question {number}"}


def answer(number: int) -> JSON:
    return {"role": "assistant", "content": [{"type": "text", "text": ANSWERS[number]}]}


@pytest.fixture
def sources(project: Project, api_key: str) -> Sources:
    return Sources(project, api_key)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the other sources report the time at which the turns are pushed."""
    monkeypatch.setattr(events, "START", timezone.now())


def push(api: Api, *messages: JSON, headers: JSON | None = None, **fields: Any) -> JSON:
    path = f"sessions/{SESSION}/turns/"
    response = api.post(path, {"messages": list(messages), **fields}, **(headers or {}))
    assert response.status_code == 201, response.content
    found: JSON = response.json()
    return found


def check(*, messages: int = 6, calls: int = 3) -> AgentSession:
    """Expect one session with each message and each call once."""
    [session] = AgentSession.objects.all()
    assert session.message_count == session.messages.count() == messages
    billed = session.turns.filter(prompt_reported__isnull=False)
    assert billed.count() == calls
    assert session.output_tokens == 57 * calls
    assert session.cost_microusd == sum(turn.cost_microusd or 0 for turn in billed) > 0
    return session


@pytest.mark.parametrize(
    ("source", "has_usage"),
    [
        ("gateway", True),
        ("log", False),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("gateway", False), ("log", True))),
    ],
)
@pytest.mark.usefixtures("now")
def test_pushes_that_begin_with_the_response(sources: Sources, source: str, has_usage: bool) -> None:
    """Agents push a response with the message that follows it; other sources store the message with the next
    response."""
    getattr(sources, source)()
    api = Api(sources.key)
    push(api, question(0))
    for number in range(3):
        fields = {"usage": usage(number)} if has_usage else {}
        messages = (question(number + 1),) if number < 2 else (NEW,)
        pushed = push(api, answer(number), *messages, **fields)
        assert pushed["positions"] == {"first": 2 * number + 1, "last": 2 * number + 2}
    session = check(messages=7)
    assert session.push_position == 7
    pushed = push(api, NEW)
    assert pushed["positions"] == {"first": 7, "last": 7}


@pytest.mark.slow
@pytest.mark.usefixtures("now")
def test_pushes_ahead_of_the_gateway(sources: Sources) -> None:
    """The gateway records calls whose messages were pushed without usage, one by one."""
    api = Api(sources.key)
    api.post("sessions/", {"id": SESSION, "format": "anthropic"})
    push(api, question(0))
    for number in range(3):
        push(api, answer(number), *([question(number + 1)] if number < 2 else []))
    sources.gateway()
    sources.gateway()
    check()


@pytest.mark.parametrize("source", ["gateway", "log"])
def test_a_session_is_pushed_long_after_it_was_recorded(sources: Sources, source: str) -> None:
    getattr(sources, source)()
    sources.push()
    check()


@pytest.mark.slow
@pytest.mark.parametrize("source", ["gateway", "log"])
@pytest.mark.parametrize("name", ["request_id", "response_id"])
def test_calls_are_recognized_by_id(sources: Sources, source: str, name: str) -> None:
    """The client pushes other messages and another usage than the provider returned, days later."""
    getattr(sources, source)()
    api = Api(sources.key)
    for number in reversed(range(3)):
        own = {"role": "assistant", "content": f"{ANSWERS[number]} (parsed)"}
        id = f"{'req' if name == 'request_id' else 'msg'}_{number}"
        for _ in range(2):
            pushed = push(api, question(number), own, usage={"input_tokens": 9}, **{name: id})
        assert pushed["turn"] == number
    check()


@pytest.mark.slow
def test_the_cost_of_a_call_in_another_session_is_counted_once(sources: Sources) -> None:
    sources.gateway()
    api = Api(sources.key)
    api.post("sessions/", {"id": "own", "format": "anthropic"})
    pushed = api.post(
        "sessions/own/turns/",
        {
            "messages": [question(0), answer(0)],
            "usage": usage(0),
            "response_id": "msg_0",
            "model": "claude-sonnet-4-5",
        },
    ).json()
    assert pushed["cost_microusd"] is None
    own = AgentSession.objects.get(external_id="own")
    assert (own.message_count, own.cost_microusd) == (2, 0)


def test_a_push_may_begin_like_a_recorded_conversation(sources: Sources) -> None:
    """A new run of the same task continues the session of an earlier run."""
    sources.log()
    api = Api(sources.key)
    pushed = push(api, question(0))
    assert pushed["positions"] == {"first": 6, "last": 6}
    push(api, answer(0), usage=usage(0) | {"output_tokens": 1})
    [session] = AgentSession.objects.all()
    assert session.message_count == 8


@pytest.mark.usefixtures("now")
def test_equal_messages_are_recognized_once(sources: Sources) -> None:
    sources.gateway_call(0)
    api = Api(sources.key)
    for _ in range(2):
        push(api, question(0))
        push(api, answer(0), usage=usage(0) | {"cache_read_input_tokens": 1}, model="claude-sonnet-4-5")
    session = AgentSession.objects.get()
    assert session.message_count == 4
    assert session.turns.filter(prompt_reported__isnull=False).count() == 2


@pytest.mark.slow
@pytest.mark.usefixtures("now")
def test_a_retry_gets_the_same_response(sources: Sources) -> None:
    sources.gateway()
    api = Api(sources.key)
    first = push(api, question(0), headers={"idempotency_key": "one"})
    assert push(api, question(0), headers={"idempotency_key": "one"}) == first
    push(api, answer(0))
    assert AgentSession.objects.get().push_position == 2


@pytest.mark.usefixtures("now")
def test_the_system_prompt_of_a_push_is_added_to_a_log(sources: Sources) -> None:
    sources.log()
    api = Api(sources.key)
    push(api, question(0), answer(0), usage=usage(0), system="Be brief.")
    assert api.get(f"sessions/{SESSION}/prompt/").json()["system"] == "Be brief."
    check()


def test_an_imported_session_that_was_continued_elsewhere_is_not_changed_by_its_log(
    project: Project, api_key: str
) -> None:
    Sources(project, api_key, calls=2).log()
    api = Api(api_key)
    push(api, NEW)
    with pytest.raises(AssertionError, match="continued over the API"):
        Sources(project, api_key).log()
    Sources(project, api_key, calls=2).log()
    check(messages=5, calls=2)
