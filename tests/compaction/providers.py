"""What the providers reject, checked on the JSON of a request. Shares no code with the renderer.

Each function returns the faults of a list of messages. The calls of the last message may be open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.compaction.gemini_checks import faults as gemini_faults

_OPENAI_FIELDS = {
    "system": {"role", "content", "name", "cache_control"},
    "developer": {"role", "content", "name", "cache_control"},
    "user": {"role", "content", "name", "cache_control"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio", "annotations", "cache_control"}
    | {"reasoning_content", "thinking_blocks", "function_call"},
    "tool": {"role", "content", "tool_call_id", "name", "cache_control"},
}
_ANTHROPIC_FIELDS = {"role", "content"}


def faults(messages: list[Any], format: str) -> list[str]:
    if not messages:
        return ["no messages"]
    if format == "gemini":
        return list(gemini_faults(messages))
    check = {"openai": _openai, "openai-responses": _responses}.get(format, _anthropic)
    return list(check(messages))


def _openai(messages: list[dict[str, Any]]) -> Iterator[str]:
    at = 0
    while at < len(messages):
        message = messages[at]
        yield from _openai_message(at, message)
        if message["role"] == "tool":
            yield f"{at}: a result without a call"
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        at += 1
        if not calls or at == len(messages):
            continue
        results = messages[at : at + len(calls)]
        answered = [result.get("tool_call_id") for result in results]
        if sorted(map(str, answered)) != sorted(calls):
            yield f"{at}: {calls} answered by {answered}"
        for result in results:
            yield from _openai_message(at, result)
            at += 1


def _openai_message(at: int, message: dict[str, Any]) -> Iterator[str]:
    role, content = message["role"], message.get("content")
    if role not in _OPENAI_FIELDS or (unknown := message.keys() - _OPENAI_FIELDS[role]):
        yield f"{at}: {role} with {sorted(unknown) if role in _OPENAI_FIELDS else ''}"
        return
    calls = message.get("tool_calls")
    if message.get("function_call") is not None:
        yield f"{at}: function_call"
    is_filled = isinstance(content, str) or (isinstance(content, list) and bool(content))
    may_lack = role == "assistant" and content is None and bool(calls or message.get("audio"))
    if not is_filled and not may_lack:
        yield f"{at}: content {content!r}"
    if calls is not None:
        ids = [call.get("id") for call in calls]
        if not ids or not all(isinstance(each, str) and each for each in ids) or len({*ids}) < len(ids):
            yield f"{at}: ids {ids}"
        for call in calls:
            if not call["function"]["name"] or not isinstance(
                json.loads(call["function"]["arguments"]), dict
            ):
                yield f"{at}: call {call}"
    if role == "tool" and not message.get("tool_call_id"):
        yield f"{at}: no tool_call_id"


def _anthropic(messages: list[dict[str, Any]]) -> Iterator[str]:
    merged: list[tuple[str, list[dict[str, Any]]]] = []
    for at, message in enumerate(messages):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if message.keys() != _ANTHROPIC_FIELDS or message["role"] not in ("user", "assistant"):
            yield f"{at}: {message['role']} with {sorted(message)}"
        if not isinstance(blocks, list) or not blocks:
            yield f"{at}: content {content!r}"
            continue
        yield from (f"{at}: blank text" for b in blocks if b["type"] == "text" and not b["text"].strip())
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks)
        else:
            merged.append((message["role"], [*blocks]))
    if merged and merged[0][0] != "user":
        yield "the assistant speaks first"
    yield from _anthropic_pairs(merged)
    if json.dumps(messages).count('"cache_control"') > 4:
        yield "too many breakpoints"
    role, blocks = merged[-1]
    if (
        role == "assistant"
        and blocks[-1]["type"] == "text"
        and blocks[-1]["text"] != blocks[-1]["text"].rstrip()
    ):
        yield "trailing blanks"


def _anthropic_pairs(merged: list[tuple[str, list[dict[str, Any]]]]) -> Iterator[str]:
    used: set[str] = set()
    waiting: list[str] = []
    for at, (role, blocks) in enumerate(merged):
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        first = [block["tool_use_id"] for block in blocks[: len(results)] if block["type"] == "tool_result"]
        if sorted(results) != sorted(waiting) or first != results:
            yield f"turn {at}: {waiting} answered by {results}, first {first}"
        calls = [block for block in blocks if block["type"] == "tool_use"]
        waiting = [call["id"] for call in calls]
        for call in calls:
            if call["id"] in used or not re.fullmatch(r"[a-zA-Z0-9_-]+", call["id"]) or role != "assistant":
                yield f"turn {at}: id {call['id']!r}"
            if not isinstance(call["input"], dict) or not 0 < len(call["name"]) <= 200:
                yield f"turn {at}: call {call}"
            used.add(call["id"])


_RESPONSES_FIELDS = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "reasoning": {"type", "id", "summary", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status"},
    "custom_tool_call": {"type", "id", "call_id", "name", "input", "status"},
    "local_shell_call": {"type", "id", "call_id", "action", "status"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
    "custom_tool_call_output": {"type", "id", "call_id", "output"},
    "local_shell_call_output": {"type", "id", "call_id", "output", "status"},
    "shell_call": {"type", "id", "call_id", "action", "status"},
    "shell_call_output": {"type", "id", "call_id", "output", "max_output_length", "status"},
    "apply_patch_call": {"type", "id", "call_id", "operation", "status"},
    "apply_patch_call_output": {"type", "id", "call_id", "output", "status"},
    "computer_call": {"type", "id", "call_id", "action", "pending_safety_checks", "status"},
    "computer_call_output": {"type", "id", "call_id", "output", "acknowledged_safety_checks", "status"},
    "mcp_approval_request": {"type", "id", "name", "arguments", "server_label"},
    "mcp_approval_response": {"type", "id", "approval_request_id", "approve", "reason"},
    "web_search_call": {"type", "id", "status", "action"},
    "compaction": {"type", "id", "encrypted_content"},
}
_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
_ANSWERS = {
    "function_call": {"function_call_output"},
    "custom_tool_call": {"custom_tool_call_output"},
    "local_shell_call": {"local_shell_call_output", "function_call_output"},
    "shell_call": {"shell_call_output"},
    "apply_patch_call": {"apply_patch_call_output"},
    "computer_call": {"computer_call_output"},
}


def _responses(items: list[dict[str, Any]]) -> Iterator[str]:
    yield from _responses_ids(items)
    waiting: dict[str, str] = {}
    used: set[str] = set()
    is_answering = False
    for at, item in enumerate(items):
        kind = item.get("type", "message")
        yield from _responses_item(at, kind, item)
        is_output = kind.endswith("_output")
        is_model = _is_of_model(item)
        call_id = item["call_id"] if "call_id" in item else item.get("id")
        if is_output:
            is_answering = True
            if kind not in _ANSWERS.get(waiting.pop(call_id, ""), ()):
                yield f"{at}: a {kind} without its call"
        elif waiting and (is_answering or not is_model):
            yield f"{at}: {list(waiting)} not answered"
        if kind in _ANSWERS:
            is_answering = False
            if call_id in used:
                yield f"{at}: {call_id!r} twice"
            used.add(call_id)
            waiting[call_id] = kind
        if kind == "reasoning":
            following = [i for i in items[at + 1 :] if i.get("type", "message") != "reasoning"][:1]
            if not following or not _is_of_model(following[0]):
                yield f"{at}: reasoning without its item"
    if is_answering and waiting:
        yield f"end: {list(waiting)} not answered"


def _responses_ids(items: list[dict[str, Any]]) -> Iterator[str]:
    ids = [item["id"] for item in items if "id" in item and item.get("type", "message") in _PREFIXES]
    yield from (f"id {id!r} twice" for id in {*ids} if ids.count(id) > 1)
    requested = {item["id"] for item in items if item.get("type") == "mcp_approval_request"}
    for at, item in enumerate(items):
        if item.get("approval_request_id") not in {None, *requested}:
            yield f"{at}: an approval without its request"


def _is_of_model(item: dict[str, Any]) -> bool:
    kind = item.get("type", "message")
    is_of_client = kind == "message" or kind.endswith(("_output", "_response"))
    return item.get("role") == "assistant" or not is_of_client


def _responses_item(at: int, kind: str, item: dict[str, Any]) -> Iterator[str]:
    if kind not in _RESPONSES_FIELDS or (unknown := item.keys() - _RESPONSES_FIELDS[kind]):
        yield f"{at}: {kind} with {sorted(unknown) if kind in _RESPONSES_FIELDS else ''}"
        return
    id = item.get("id", _PREFIXES.get(kind, ""))
    if not isinstance(id, str) or not id.startswith(_PREFIXES.get(kind, "")) or len(id) > 64:
        yield f"{at}: id {id!r}"
    call_id = item["call_id"] if "call_id" in item else item.get("id")
    if "call_id" in _RESPONSES_FIELDS[kind] and not 0 < len(call_id or "") <= 64:
        yield f"{at}: call_id {call_id!r}"
    if kind == "message":
        yield from _responses_message(at, item)
    elif not _IS_VALID.get(kind, lambda _: True)(item):
        yield f"{at}: {item}"
    elif kind.endswith("_output") and not isinstance(item["output"], _OUTPUTS.get(kind, str | list)):
        yield f"{at}: output {item['output']!r}"


#: The type of an output, if it is not a string or a list.
_OUTPUTS: dict[str, type] = {
    "local_shell_call_output": str,
    "shell_call_output": list,
    "apply_patch_call_output": str,
    "computer_call_output": dict,
}
_IS_VALID: dict[str, Callable[[dict[str, Any]], object]] = {
    "reasoning": lambda item: isinstance(item["summary"], list) and item["encrypted_content"],
    "function_call": lambda item: item["name"] and isinstance(json.loads(item["arguments"]), dict),
    "custom_tool_call": lambda item: item["name"] and isinstance(item["input"], str),
    "shell_call_output": lambda item: all("stdout" in run for run in item["output"]),
}


def _responses_message(at: int, item: dict[str, Any]) -> Iterator[str]:
    role, content = item["role"], item["content"]
    if role not in ("user", "assistant", "system", "developer"):
        yield f"{at}: role {role}"
    kinds = {"output_text", "refusal"} if role == "assistant" else {"input_text", "input_image", "input_file"}
    if not isinstance(content, str) and not (content and all(part["type"] in kinds for part in content)):
        yield f"{at}: {role} with {content!r}"
