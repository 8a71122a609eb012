"""Prompts that end with open calls, served from the stored bytes of all messages."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from compaction import dialects
from compaction.capabilities import Capabilities
from compaction.continuation import Continuation
from compaction.rendering import render
from sessions.store.prompt_bytes import PromptMessages, RequestParts, joined_fields, manifest_entry
from tests.compaction.providers import faults


def anthropic_call(*ids: str) -> dict[str, Any]:
    uses = [{"type": "tool_use", "id": id, "name": "read", "input": {}} for id in ids]
    return {"role": "assistant", "content": [{"type": "text", "text": "I read."}, *uses]}


def anthropic_result(*ids: str) -> dict[str, Any]:
    results = [{"type": "tool_result", "tool_use_id": id, "content": "text"} for id in ids]
    return {"role": "user", "content": results}


def openai_call(*ids: str) -> dict[str, Any]:
    calls = [{"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def openai_result(id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "text"}


def responses_call(id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"}


def responses_result(id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": "text"}


def custom_call(id: str) -> dict[str, Any]:
    return {"type": "custom_tool_call", "call_id": id, "name": "read", "input": "text"}


def gemini_call(*ids: str) -> dict[str, Any]:
    return {
        "role": "model",
        "parts": [{"functionCall": {"id": id, "name": "read", "args": {}}} for id in ids],
    }


def gemini_result(id: str) -> dict[str, Any]:
    response = {"id": id, "name": "read", "response": {"output": "text"}}
    return {"role": "user", "parts": [{"functionResponse": response}]}


USER = {"role": "user", "content": "Go."}
CONTENT = {"role": "user", "parts": [{"text": "Go."}]}
OPEN = {
    "anthropic": [USER, anthropic_call("a"), anthropic_result("a"), anthropic_call("b")],
    "anthropic, parallel": [USER, anthropic_call("a"), anthropic_result("a"), anthropic_call("b", "c")],
    "openai": [USER, openai_call("a"), openai_result("a"), openai_call("b", "c")],
    "openai, partly answered": [USER, openai_call("a"), openai_result("a"), openai_call("b", "c"),
                                openai_result("c")],
    "openai-responses": [USER, responses_call("a"), responses_result("a"), responses_call("b"),
                         custom_call("c")],
    "openai-responses, partly answered": [USER, responses_call("a"), responses_call("b"),
                                          responses_result("b")],
    "gemini": [CONTENT, gemini_call("a"), gemini_result("a"), gemini_call("b", "c")],
}  # fmt: skip


def prompt_of(items: list[Any], format: str) -> tuple[PromptMessages, Continuation]:
    """Return the messages as stored, with the spaces of Python's JSON, and their continuation state."""
    messages = dialects.parse_mixed(items, default=format)
    manifest = [manifest_entry(at, at, message.role, "verbatim", 1, 1) for at, message in enumerate(messages)]
    prompt = PromptMessages(pieces=[json.dumps(item).encode() for item in items], manifest=manifest)
    return prompt, Continuation().after(messages, format)


def joined(
    prompt: PromptMessages, state: Continuation, format: str, capabilities: Capabilities
) -> bytes | None:
    parts = RequestParts(
        stored_format=format,
        format=format,
        system=None,
        tools=None,
        continuation=state,
        capabilities=capabilities,
    )
    fields = joined_fields(prompt, parts)
    return None if fields is None else orjson.dumps(fields["messages"])


@pytest.mark.parametrize("prefill", [True, False])
@pytest.mark.parametrize("name", OPEN)
def test_the_stored_bytes_are_followed_by_the_missing_results(name: str, prefill: bool) -> None:
    items, format, capabilities = OPEN[name], name.split(",")[0], Capabilities(prefill=prefill)
    prompt, state = prompt_of(items, format)
    assert state.open_calls
    shown = joined(prompt, state, format, capabilities)
    assert shown is not None
    assert shown.startswith(b"[" + b",".join(prompt.pieces))
    rendered = render(dialects.parse(items, format=format), format=format, capabilities=capabilities)
    assert json.loads(shown) == rendered.messages
    assert faults(rendered.messages, format) == []


@pytest.mark.parametrize(
    "following",
    [
        {"role": "user", "content": "Working memory: none."},
        {"role": "system", "content": "Be brief."},
    ],
)
def test_a_prompt_is_rendered_if_the_open_calls_are_not_at_its_end(following: dict[str, Any]) -> None:
    items = OPEN["openai"]
    _, state = prompt_of(items, "openai")
    prompt, _ = prompt_of([*items, following], "openai")
    assert joined(prompt, state, "openai", Capabilities()) is None


def test_a_repeated_id_is_rendered() -> None:
    items = [USER, anthropic_call("a"), anthropic_result("a"), anthropic_call("a")]
    prompt, state = prompt_of(items, "anthropic")
    assert joined(prompt, state, "anthropic", Capabilities()) is None


@pytest.mark.parametrize(("text", "is_joined"), [("Done.", True), ("Done, ", False), ("Done:\n", False)])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_only_an_answer_that_ends_with_whitespace_is_rendered(
    text: str, is_joined: bool, separators: tuple[str, str]
) -> None:
    answers = [
        {"role": "assistant", "content": text},
        {"content": [{"text": text, "type": "text"}], "role": "assistant"},
    ]
    for answer in answers:
        prompt, state = prompt_of([USER, answer], "anthropic")
        pieces = [json.dumps(item, separators=separators).encode() for item in (USER, answer)]
        spaced = PromptMessages(pieces=pieces, manifest=prompt.manifest)
        assert (joined(spaced, state, "anthropic", Capabilities()) is not None) == is_joined
