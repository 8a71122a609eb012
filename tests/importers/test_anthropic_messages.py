"""Plain JSON of Anthropic messages, and logged requests."""

from __future__ import annotations

from typing import Any

from compaction.messages import Usage
from tests.importers.logs import document, jsonl, read
from tests.importers.pairing import bodies, misplaced

JSON = dict[str, Any]

CALL = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
OTHER_CALL = {"type": "tool_use", "id": "c2", "name": "ls", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}
OTHER_RESULT = {"type": "tool_result", "tool_use_id": "c2", "content": "a.py"}

USER = {"role": "user", "content": "List the files"}
MESSAGES: list[JSON] = [
    USER,
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": [{**RESULT, "cache_control": {"type": "ephemeral"}}]},
    {"role": "assistant", "content": "There is a.py."},
]
SENT = [*MESSAGES[:2], {"role": "user", "content": [RESULT]}, MESSAGES[3]]


def request(messages: list[JSON], answer: JSON, number: int) -> JSON:
    usage = {"input_tokens": 9, "cache_read_input_tokens": 500, "cache_creation_input_tokens": 40}
    model = "claude-sonnet-4-5"
    response = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [answer],
        "usage": usage | {"output_tokens": number},
    }
    body = {"model": model, "system": "Be brief.", "tools": [{"name": "ls"}], "messages": messages}
    return {"request": body, "response": response}


def test_a_conversation_as_a_list_and_line_by_line() -> None:
    for log in (document(MESSAGES), document({"messages": MESSAGES}), jsonl(*MESSAGES)):
        [session], damages = read(log, "anthropic-messages")
        assert (session.format, damages, list(misplaced(session))) == ("anthropic", [], [])
        assert bodies(session) == SENT


def test_logged_requests_are_one_conversation_with_usage() -> None:
    text = {"type": "text", "text": "There is a.py.", "citations": None}
    answers = [{"role": "assistant", "content": [call]} for call in (CALL, OTHER_CALL)]
    results = [{"role": "user", "content": [each]} for each in (RESULT, OTHER_RESULT)]
    first = [USER]
    second = [*first, answers[0], results[0]]
    third = [*second, answers[1], results[1]]
    calls = [request(first, CALL, 1), request(second, OTHER_CALL, 2), request(third, text, 3)]
    [session], damages = read(jsonl(*calls), "anthropic-messages")
    assert (damages, session.system, session.tools) == ([], "Be brief.", [{"name": "ls"}])
    last = {"role": "assistant", "content": [{"type": "text", "text": "There is a.py."}]}
    assert bodies(session) == [*third, last]
    assert [(turn.response_id, turn.usage) for turn in session.turns] == [
        (
            f"msg_{number}",
            Usage(uncached_tokens=9, cache_read_tokens=500, cache_write_tokens=40, output_tokens=number),
        )
        for number in (1, 2, 3)
    ]


def test_chat_messages_beside_a_system_prompt_remain_chat_messages() -> None:
    function = {"name": "ls", "arguments": "{}"}
    called = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": function}]}
    answered = {"role": "tool", "tool_call_id": "c1", "content": "a.py"}
    [session], _ = read(document({"system": "Be.", "messages": [USER, called, answered]}), "openai-chat")
    assert [body["role"] for body in bodies(session)] == ["user", "assistant", "tool"]


def test_text_alone_is_read_as_chat_messages() -> None:
    [session], _ = read(document([USER, MESSAGES[3]]), "openai-chat")
    assert session.format == "openai"
