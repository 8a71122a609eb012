"""The hash of a message depends on what it says, and not on how a client writes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.identity import REASONING, beginning_hashes, history_digest, message_hashes

JSON = dict[str, Any]
Rewrite = Callable[[JSON], JSON]

KEY = b"of a project"
#: Words, so that a message never ends or begins with whitespace, which does not count.
texts = st.text('abé"\\', min_size=1, max_size=8)
arguments = st.dictionaries(
    texts, st.none() | st.integers() | texts | st.lists(texts, max_size=2), max_size=3
)


def hashed(message: JSON) -> bytes:
    """Return the hash of a message in the middle of a history."""
    return message_hashes([message], key=KEY, after=1)[0]


def anthropic(text: str, given: JSON) -> JSON:
    call = {"type": "tool_use", "id": "toolu_1", "name": "run", "input": given}
    return {"role": "assistant", "content": [{"type": "text", "text": text}, call]}


def chat(text: str, given: JSON) -> JSON:
    function = {"name": "run", "arguments": json.dumps(given)}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }


def responses(text: str, given: JSON) -> JSON:
    arguments = json.dumps({text: given})
    return {"type": "function_call", "call_id": "call_1", "name": "run", "arguments": arguments}


def gemini(text: str, given: JSON) -> JSON:
    return {"role": "model", "parts": [{"text": text}, {"functionCall": {"name": "run", "args": given}}]}


def _with_breakpoint(message: JSON) -> JSON:
    *others, last = message["content"]
    return {**message, "content": [*others, {**last, "cache_control": {"type": "ephemeral"}}]}


def _with_thinking(message: JSON) -> JSON:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    return {**message, "content": [thinking, *message["content"]]}


def _as_blocks(message: JSON) -> JSON:
    return {**message, "content": [{"type": "text", "text": f"{message['content']}\n"}]}


def _with_other_whitespace(message: JSON) -> JSON:
    """Serialize the arguments as frameworks do, which parse them and write them again."""
    if "arguments" in message:
        given = json.loads(message["arguments"])
        return {**message, "arguments": json.dumps(given, indent=1, ensure_ascii=False)}
    calls = [{**call, "function": _with_other_whitespace(call["function"])} for call in message["tool_calls"]]
    return {**message, "tool_calls": calls}


def _with_id(message: JSON) -> JSON:
    return {**message, "id": "item_2", "status": "completed"}


def _in_snake_case(message: JSON) -> JSON:
    text, call = message["parts"]
    return {**message, "parts": [text, {"function_call": call["functionCall"]}]}


def _in_two_parts(message: JSON) -> JSON:
    """Keep the pieces of a streamed text, with a thought before them and a signature at the call."""
    text, call = message["parts"]
    pieces = [{"text": text["text"][:1]}, {"text": text["text"][1:]}]
    thought = {"text": "Hm.", "thought": True}
    return {**message, "parts": [thought, *pieces, {**call, "thoughtSignature": "s"}]}


@pytest.mark.parametrize(
    ("build", "rewrite"),
    [
        (anthropic, _with_breakpoint),
        (anthropic, _with_thinking),
        (chat, _as_blocks),
        (chat, _with_other_whitespace),
        (responses, _with_other_whitespace),
        (responses, _with_id),
        (gemini, _in_snake_case),
        (gemini, _in_two_parts),
    ],
)
@given(text=texts, other=texts, given=arguments, changed=arguments)
def test_the_hash_is_that_of_the_content(
    build: Callable[[str, JSON], JSON],
    rewrite: Rewrite,
    text: str,
    other: str,
    given: JSON,
    changed: JSON,
) -> None:
    message = build(text, given)
    assert hashed(rewrite(message)) == hashed(message)
    assert (hashed(build(other, given)) == hashed(message)) == (other == text)
    assert (hashed(build(text, changed)) == hashed(message)) == (changed == given)


@pytest.mark.parametrize(
    "changed",
    [
        {"role": "user"},
        {"tool_call_id": "call_2"},
        {"content": "Error"},
        {"content": None},
        {"function_call": {"name": "run", "arguments": "{}"}},
    ],
)
def test_every_field_that_the_model_reads_counts(changed: JSON) -> None:
    message = {"role": "tool", "tool_call_id": "call_1", "content": "ok"}
    assert hashed({**message, **changed}) != hashed(message)


@pytest.mark.parametrize("changed", [{"tool_use_id": "toolu_2"}, {"is_error": True}, {"content": "Error"}])
def test_every_field_of_a_result_counts(changed: JSON) -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    messages = [{"role": "user", "content": [each]} for each in (result, {**result, **changed})]
    assert hashed(messages[0]) != hashed(messages[1])
    rewritten = {**result, "content": [{"type": "text", "text": "ok"}], "is_error": False}
    assert hashed({"role": "user", "content": [rewritten]}) == hashed(messages[0])


def test_the_hash_does_not_reveal_the_content_without_the_key() -> None:
    message = {"role": "user", "content": "hunter2"}
    assert message_hashes([message], key=b"of another project", after=1) != [hashed(message)]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_only_leading_system_messages_may_change(role: str) -> None:
    def hashes(first: str, later: str) -> list[bytes]:
        system, late = ({"role": role, "content": each} for each in (first, later))
        return message_hashes([system, system, {"role": "user", "content": "Hi."}, late], key=KEY)

    assert hashes("It is noon.", "x") == hashes("It is one.", "x")
    assert hashes("It is noon.", "x")[:3] == hashes("It is noon.", "y")[:3]
    assert hashes("It is noon.", "x")[3] != hashes("It is noon.", "y")[3]


histories = st.lists(
    st.one_of(
        texts.map(lambda text: {"role": "user", "content": text}),
        texts.map(lambda text: {"type": "reasoning", "encrypted_content": text}),
    ),
    min_size=1,
)


@given(history=histories, end=st.integers(1, 12))
def test_a_history_can_be_hashed_in_pieces_and_without_its_reasoning(history: list[JSON], end: int) -> None:
    whole = message_hashes(history, key=KEY)
    first, second = history[:end], history[end:]
    hashes = message_hashes(first, key=KEY), message_hashes(second, key=KEY, after=len(first))
    assert [*hashes[0], *hashes[1]] == whole
    digest = history_digest(whole)
    assert history_digest(hashes[1], start=history_digest(hashes[0])) == digest
    spoken = [message for message in history if message.get("type") != "reasoning"]
    assert history_digest(message_hashes(spoken, key=KEY, after=1)) == digest
    assert whole.count(REASONING) == len(history) - len(spoken)
    if spoken:
        assert history_digest(message_hashes(spoken[:-1], key=KEY, after=1)) != digest


@given(pieces=st.lists(texts, min_size=1, max_size=4), field=st.sampled_from(["content", "parts"]))
def test_a_message_with_more_blocks_begins_with_the_message_without_them(
    pieces: list[str], field: str
) -> None:
    # A call between the texts: adjacent texts of Gemini count as one.
    block = {"content": {"type": "image", "url": "x"}, "parts": {"functionCall": {"name": "run"}}}[field]
    blocks = [each for piece in pieces for each in ({"type": "text", "text": piece}, block)]
    found = beginning_hashes({"role": "user", field: blocks}, key=KEY, after=1)
    assert found == {hashed({"role": "user", field: blocks[:end]}) for end in range(1, len(blocks))}
    assert hashed({"role": "user", field: blocks}) not in found


@pytest.mark.parametrize("message", [{"role": "user", "content": "Hi."}, {"role": "user"}, "Hi.", None])
def test_a_message_without_blocks_has_no_beginning(message: Any) -> None:
    assert beginning_hashes(message, key=KEY, after=1) == set()
