"""Prompts that are fetched again after pushes, compactions, reverts and a restored database."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from sessions.models import AgentSession, Message
from sessions.selectors.prompts.cache import (
    CachedPreamble,
    CachedPrompt,
    PromptCache,
    PromptVersion,
    prompt_cache,
)
from sessions.selectors.prompts.stored import messages_extend
from sessions.store import bodies
from sessions.store.prompt_bytes import PromptMessages
from tests.api.client import Api
from tests.api.statements import statements
from tests.api.talk import push, request, whole_turn


def fetched(api: Api) -> dict[str, Any]:
    """Return the prompt, which must not differ from that of a process that has fetched nothing."""
    prompt: dict[str, Any] = api.get("sessions/s1/prompt/?manifest=1").json()
    prompt_cache.clear()
    assert api.get("sessions/s1/prompt/?manifest=1").json() == prompt
    return prompt


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_prompt_follows_pushes_compactions_and_reverts(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 3_000}})
    compactions = 0
    for number in range(12):
        push(api, whole_turn(number, lines=40))
        before = api.get("sessions/s1/prompt/").json()  # cached for the next turn
        compactions = before["compactions"]
        push(api, [request(f"And then {number}?")])
        prompt = fetched(api)
        if prompt["compactions"] == compactions:
            assert prompt["messages"] == [*before["messages"], request(f"And then {number}?")]
        api.get("sessions/s1/prompt/")
    assert compactions
    [newest, *_] = api.get("sessions/s1/compactions/").json()["data"]
    assert api.post(f"sessions/s1/compactions/{newest['number']}/revert/").status_code == 200
    assert fetched(api)["tokens"] > prompt["tokens"]


@pytest.mark.django_db(transaction=True)
def test_a_prompt_is_read_again_if_an_earlier_state_of_the_database_was_restored(api: Api) -> None:
    api.post("sessions/", {"id": "s1"})
    push(api, [request("One")])
    push(api, [request("Two")])
    api.get("sessions/s1/prompt/")
    session = AgentSession.objects.get(external_id="s1")
    for position, content in enumerate(["Another one", "Another two"]):
        body = bodies.pack(bodies.json_bytes(request(content)))
        Message.objects.filter(session=session, position=position).update(body=body)
    AgentSession.objects.filter(pk=session.pk).update(title="Restored")  # another version of its row
    shown = api.get("sessions/s1/prompt/").json()["messages"]
    assert shown == [request("Another one"), request("Another two")]


@pytest.mark.django_db(transaction=True)
def test_fetching_an_unchanged_prompt_again_takes_one_statement(api: Api) -> None:
    api.post("sessions/", {"id": "s1"})
    push(api, [request("One")])
    prompt = api.get("sessions/s1/prompt/").json()
    again: list[Any] = []
    assert len(statements(lambda: again.append(api.get("sessions/s1/prompt/").json()))) == 1
    assert again == [prompt]


def test_a_prompt_is_read_again_if_the_client_omits_its_last_message_meanwhile() -> None:
    messages = PromptMessages(pieces=[b"{}"], manifest=[{"role": "user"}])
    preamble = CachedPreamble(version=1, system=None, tools=None)
    version = PromptVersion(0, 0, 0, 0)
    known = CachedPrompt(version=version, row=("1", "1"), end=1, preamble=preamble, messages=messages)
    assert messages_extend(known, {0: None}, 1) is None


def test_the_least_recently_fetched_prompts_are_removed() -> None:
    cache, ids = PromptCache(max_bytes=4_000), [uuid4() for _ in range(4)]
    messages = PromptMessages(pieces=[b"x" * 300], manifest=[{"role": "user"}])
    preamble = CachedPreamble(version=1, system=None, tools=None)
    version = PromptVersion(0, 0, 0, 0)
    prompt = CachedPrompt(version=version, row=("1", "1"), end=1, preamble=preamble, messages=messages)
    for each in ids[:3]:
        cache.keep(each, prompt)
    assert cache.find(ids[0], version=version, end=1) is prompt
    cache.keep(ids[3], prompt)
    assert [cache.find(each, version=version, end=1) for each in ids] == [prompt, None, prompt, prompt]
