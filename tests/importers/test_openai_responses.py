"""Plain JSON of OpenAI's Responses API: items, and logged requests."""

from __future__ import annotations

from typing import Any

from compaction.messages import Usage
from tests.importers.logs import document, jsonl, read
from tests.importers.pairing import bodies

JSON = dict[str, Any]

USER = {"role": "user", "content": "List the files"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAA"}
CALL = {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "a.py"}
ANSWER = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "There is a.py."}],
}
ITEMS: list[JSON] = [USER, THOUGHT, CALL, OUTPUT, ANSWER]
STORED = [{"type": "message", **USER}, *ITEMS[1:]]


def call(number: int, items: list[JSON], *output: JSON) -> JSON:
    details = {"input_tokens": 90, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": number}
    response = {"id": f"resp_{number}", "object": "response", "model": "gpt-5", "usage": details}
    request = {"model": "gpt-5", "instructions": "Be brief.", "tools": [{"name": "ls"}], "input": items}
    return {"request": request, "response": response | {"output": list(output)}}


def test_items_as_a_list_and_line_by_line() -> None:
    for log in (document(ITEMS), document({"model": "gpt-5", "input": ITEMS}), jsonl(*ITEMS)):
        [session], damages = read(log, "openai-responses")
        assert (session.format, damages) == ("openai-responses", [])
        assert bodies(session) == STORED
        assert [len(turn.messages) for turn in session.turns] == [3, 2]


def test_logged_requests_are_one_conversation_with_usage() -> None:
    first = call(1, [USER], {**THOUGHT, "status": None}, {**CALL, "id": "fc_1", "status": "completed"})
    second = call(2, [USER, THOUGHT, CALL, OUTPUT], ANSWER)
    [session], damages = read(jsonl(first, second), "openai-responses")
    assert (damages, session.system, session.tools) == ([], "Be brief.", [{"name": "ls"}])
    assert (session.title, session.model) == ("List the files", "gpt-5")
    assert [body["type"] for body in bodies(session)] == [body["type"] for body in STORED]
    assert [(turn.response_id, turn.usage) for turn in session.turns] == [
        (
            f"resp_{number}",
            Usage(uncached_tokens=30, cache_read_tokens=60, cache_write_tokens=0, output_tokens=number),
        )
        for number in (1, 2)
    ]


def test_a_request_without_earlier_items_follows_a_compaction() -> None:
    summary = {"role": "user", "content": "The file is a.py."}
    first, second = call(1, [USER, THOUGHT, CALL, OUTPUT], ANSWER), call(2, [summary], ANSWER)
    [session], _ = read(jsonl(first, second), "openai-responses")
    assert [bool(turn.client_compaction) for turn in session.turns] == [False, False, True]


def test_chat_messages_are_not_items() -> None:
    called = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    chat = [USER, {"role": "assistant", "content": None, "tool_calls": [called]}]
    [session], _ = read(document(chat), "openai-chat")
    assert session.format == "openai"
