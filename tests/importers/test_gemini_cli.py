"""Gemini CLI: recordings as one document and as JSONL, and checkpoints."""

from __future__ import annotations

from typing import Any

from compaction.messages import Usage
from importers.base import LogFile
from tests.importers.logs import document, jsonl, read
from tests.importers.pairing import bodies

FACTS = {"sessionId": "s-1", "projectHash": "ab12", "startTime": "2026-01-05T10:00:00Z"}
CONTEXT = {"id": "m0", "type": "user", "content": "<session_context>\nA folder.\n</session_context>"}
REQUEST = {"id": "m1", "type": "user", "timestamp": "2026-01-05T10:00:01Z", "content": "Fix the parser"}


def answer(id: str, text: str, **fields: Any) -> dict[str, Any]:
    tokens = {"input": 1000, "output": 20, "cached": 800, "thoughts": 30, "tool": 5, "total": 1055}
    return {"id": id, "type": "gemini", "content": text, "model": "gemini-2.5-pro", "tokens": tokens} | fields


def called(id: str, output: str) -> dict[str, Any]:
    result = [{"functionResponse": {"id": id, "name": "read_file", "response": {"output": output}}}]
    return {"id": id, "name": "read_file", "args": {"path": "a.py"}, "result": result, "status": "success"}


def test_a_recording_becomes_turns_with_usage_in_disjoint_parts() -> None:
    messages = [CONTEXT, REQUEST, answer("m2", "", toolCalls=[called("c1", "x = 1")]), answer("m3", "Done.")]
    [session], damages = read(document({**FACTS, "messages": messages}), "gemini-cli")
    assert damages == []
    assert (session.external_id, session.title, session.model) == ("s-1", "Fix the parser", "gemini-2.5-pro")
    assert [[message.is_meta for message in turn.messages] for turn in session.turns] == [
        [True, False, False],
        [False, False],
    ]
    usage = Usage(uncached_tokens=205, cache_read_tokens=800, cache_write_tokens=0, output_tokens=50)
    assert [turn.usage for turn in session.turns] == [usage, usage]
    call = bodies(session)[2]["tool_calls"][0]
    assert call["function"] == {"name": "read_file", "arguments": '{"path": "a.py"}'}
    assert bodies(session)[3] == {"role": "tool", "tool_call_id": "c1", "content": "x = 1"}


def test_a_damaged_message_does_not_hide_the_others() -> None:
    messages = [REQUEST, answer("m2", "", toolCalls=["c1"]), answer("m3", "Done.")]
    [session], [damage] = read(document({**FACTS, "messages": messages}), "gemini-cli")
    assert [body["content"] for body in bodies(session)] == ["Fix the parser", "Done."]
    assert damage.reason.startswith("message 2")


def test_the_last_record_of_a_message_is_used() -> None:
    log = jsonl(
        {**FACTS, "messages": []},
        REQUEST,
        answer("m2", ""),
        answer("m2", "Let me look.", toolCalls=[called("c1", "x = 1")]),
        {"$set": {"summary": "Repair of the parser"}},
        {"$rewindTo": "m2"},
        {"id": "m3", "type": "info", "content": "Request cancelled."},
        answer("m4", "Done."),
    )
    [session], damages = read(log, "gemini-cli")
    assert damages == []
    assert session.title == "Repair of the parser"
    assert [body["role"] for body in bodies(session)] == ["user", "assistant", "tool", "assistant"]
    assert bodies(session)[1]["content"] == "Let me look."


def test_a_replaced_context_is_the_clients_compaction() -> None:
    summary = {"id": "n1", "type": "user", "content": "<state_snapshot>The parser works.</state_snapshot>"}
    log = jsonl(
        FACTS, REQUEST, answer("m2", "Done."), {"$set": {"messages": [summary]}}, answer("n2", "Next?")
    )
    [session], _ = read(log, "gemini-cli")
    first, second = session.turns
    assert first.client_compaction is None
    assert second.client_compaction is not None
    assert second.messages[0].is_summary


def test_a_sub_agents_recording_names_its_parent() -> None:
    facts = {**FACTS, "sessionId": "child", "kind": "subagent"}
    log = LogFile(name="tmp/ab12/chats/s-1/child.jsonl", data=jsonl(facts, REQUEST).data)
    [session], _ = read(log, "gemini-cli")
    assert session.parent_external_id == "s-1"


def test_a_checkpoint_pairs_responses_with_calls_that_have_no_id() -> None:
    def call(path: str) -> dict[str, Any]:
        return {"functionCall": {"name": "read_file", "args": {"path": path}}}

    def response(text: str) -> dict[str, Any]:
        return {"functionResponse": {"name": "read_file", "response": {"output": text}}}

    contents = [
        {"role": "user", "parts": [{"text": "Compare both files"}]},
        {
            "role": "model",
            "parts": [{"thought": True, "text": "Hm."}, {"text": "Reading."}, call("a"), call("b")],
        },
        {"role": "user", "parts": [response("1"), response("2")]},
        {"role": "model", "parts": [{"text": "They differ."}]},
    ]
    [plain], _ = read(document(contents), "gemini-cli")
    [wrapped], _ = read(document({"history": contents, "authType": "oauth-personal"}), "gemini-cli")
    assert bodies(plain) == bodies(wrapped)
    roles = [body["role"] for body in bodies(plain)]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    assert bodies(plain)[1]["content"] == "Reading."
    ids = [made["id"] for made in bodies(plain)[1]["tool_calls"]]
    assert [(body["tool_call_id"], body["content"]) for body in bodies(plain)[2:4]] == [
        (ids[0], "1"),
        (ids[1], "2"),
    ]


def test_images_are_preserved() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    contents = [{"role": "user", "parts": [{"text": "What is this?"}, image]}]
    [session], _ = read(document(contents), "gemini-cli")
    assert bodies(session)[0]["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,aGk="},
    }
