"""Render messages as items of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compaction.dialects.blocks import (
    as_text,
    digested_id,
    error_text,
    joined_text,
    note_of,
    server_tool_text,
    system_text,
    text_of,
)
from compaction.dialects.declarations import NO_ARGUMENTS
from compaction.dialects.media import media_part, result_blocks
from compaction.dialects.openai_responses.kinds import (
    CALLS,
    COMPUTER_CALL,
    COMPUTER_OUTPUT,
    CUSTOM_CALL,
    CUSTOM_OUTPUT,
    FUNCTION_CALL,
    FUNCTION_OUTPUT,
    ID_HOSTED,
    ID_OPTIONAL,
    ID_PREFIXES,
    INPUT_TEXT,
    MAX_ID,
    MEDIA,
    MESSAGE,
    NAME,
    OUTPUT_KINDS,
    OUTPUTS,
    ROLES,
    SHELL_OUTPUT,
    call_id_of,
    can_answer,
    kind_of,
    text_kind,
)
from compaction.dialects.openai_responses.parsing import has_valid_id
from compaction.invariants.pairs import results_of
from compaction.jsontext import dumps, is_object, loads_object
from compaction.messages import JSON, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult

Item = dict[str, JSON]


def message_json(message: Message) -> list[Item]:
    """Render one message: none if it has no content, several if it contains calls or results."""
    native = message.format == NAME
    if native and not message.patched and message.source is not None:
        return [dict(message.source)]
    items = [_output(part, native) for part in results_of(message)]
    content: list[Item] = []
    role = _role(message, native)
    for part in message.parts:
        item = _item(part, native)
        if item is not None:
            items += _message(message, content, role, native)
            content = []
            items.append(item)
        elif (block := _content(part, native, role)) is not None:
            content.append(block)
    return items + _message(message, content, role, native)


def _role(message: Message, native: bool) -> str:
    role = message.source.get("role") if native and message.source is not None else None
    if isinstance(role, str) and role in ROLES and role != "developer":
        role = None  # the role of an edited message may have changed
    if role == "developer" and message.role is Role.SYSTEM:
        return "developer"
    return "user" if message.role is Role.TOOL else message.role.value


def _message(message: Message, content: list[Item], role: str, native: bool) -> list[Item]:
    """Return a message with this content, or an empty list if there is none."""
    if not content:
        return []
    source = message.source if native and message.source is not None else {}
    is_own = kind_of(source) == MESSAGE
    kept = {k: v for k, v in source.items() if is_own and k in ("type", "status", "phase")}
    if is_own and message.patched and _is_unedited(message) and has_valid_id(source) and "id" in source:
        kept["id"] = source["id"]
    texts = [block["text"] for block in content if block.keys() == {"type", "text"}]
    is_text = len(texts) == len(content) and not isinstance(source.get("content"), list)
    return [{"type": MESSAGE, **kept, "role": role, "content": "\n\n".join(texts) if is_text else content}]


def _is_unedited(message: Message) -> bool:
    return not any(getattr(part, "patched", False) for part in message.parts)


def _content(part: Part, native: bool, role: str) -> Item | None:
    """Return a content part of a message, or None for calls, results and thinking."""
    source = part.source if native and isinstance(part.source, Mapping) else None
    kind = text_kind(role)
    match part:
        case Text(text=text, patched=False) if source is not None and source.get("type") in (kind, "refusal"):
            return dict(source)
        case Text(text=text):
            return {**_annotations(source, kind), "type": kind, "text": text} if text else None
        case Opaque(kind=name):
            block = part.source if isinstance(part.source, Mapping) else {}
            made = dict(block) if native and name in MEDIA else media_part(block)
            if made is None or (role == "assistant" and made.get("type") != kind):
                return {"type": kind, "text": note_of(part.source, name)}
            return made
        case ToolCall(server=True) | ToolResult(server=True):
            return {"type": kind, "text": server_tool_text(part)}
    return None


def _annotations(source: Mapping[str, Any] | None, kind: str) -> Item:
    """Return the other fields of an edited text part, if they still apply."""
    if source is None or source.get("type") != kind:
        return {}
    return {k: v for k, v in source.items() if k not in ("annotations", "logprobs")}


def _item(part: Part, native: bool) -> Item | None:
    """Return the item of a call, or of a part that is an item; None for content and results."""
    source = part.source if native and isinstance(part.source, Mapping) else None
    match part:
        case ToolCall(server=False):
            return _call(part, source)
        case Thinking() if source is not None:
            kept = {k: v for k, v in source.items() if k != "content" and k[:1] != "_"}
            summary = kept.get("summary") if isinstance(kept.get("summary"), list) else []
            return _with_valid_id({**kept, "summary": summary})
        case Opaque(kind=kind) if source is not None and kind not in MEDIA:
            return dict(source)
    return None


def _call(part: ToolCall, source: Mapping[str, Any] | None) -> Item:
    kind = kind_of(source) if source is not None else FUNCTION_CALL
    if source is not None and kind in CALLS and (not part.patched or part.fixed):
        call_id = {"call_id": short_id(part.call_id)} if "call_id" in source else {}
        return _with_valid_id({**source, **call_id})
    kept = {k: v for k, v in (source or {}).items() if k not in ("id", "input") and k[:1] != "_"}
    base: Item = {**kept, "type": kind, "call_id": short_id(part.call_id), "name": part.name}
    if kind == CUSTOM_CALL:
        given = loads_object(part.arguments)
        text = given.get("input") if given.keys() == {"input"} else part.arguments
        return base | {"input": text if isinstance(text, str) else as_text(text)}
    arguments = part.arguments if is_object(part.arguments) else dumps(loads_object(part.arguments))
    return base | {"arguments": arguments}


def _output(part: ToolResult, native: bool) -> Item:
    source = part.source if native and isinstance(part.source, Mapping) else None
    kind = kind_of(source) if source is not None else FUNCTION_OUTPUT
    if source is not None and kind in OUTPUT_KINDS and not part.patched:
        return dict(source)
    kept = {k: v for k, v in (source or {}).items() if k[:1] != "_"} if kind in OUTPUT_KINDS else {}
    call_id = short_id(part.call_id)
    item: Item = {"type": FUNCTION_OUTPUT, **kept, "call_id": call_id, "output": _output_value(part, source)}
    if source is not None and "call_id" not in source:  # the id is that of the call
        item.pop("call_id")
        item["id"] = call_id
    return item


def _output_value(part: ToolResult, source: Mapping[str, Any] | None) -> JSON:
    """Return the content of an output whose text may have been edited."""
    kind = kind_of(source) if source is not None else FUNCTION_OUTPUT
    if source is not None and kind == COMPUTER_OUTPUT:
        return source.get("output") or {"type": "computer_screenshot"}
    text = error_text(part)
    if kind == SHELL_OUTPUT:
        return shell_output(text)
    if not part.media_tokens or kind not in (FUNCTION_OUTPUT, CUSTOM_OUTPUT):
        return text
    found = [block for block in result_blocks(part.source) if text_of(block) is None]
    if not found:
        return text
    media = [dict(b) if b.get("type") in MEDIA else media_part(b) for b in found]
    own: list[JSON] = [{"type": INPUT_TEXT, "text": text}] if text else []
    return own + [block for block in media if block is not None]


def _with_valid_id(item: Item) -> Item:
    return item if has_valid_id(item) else {k: v for k, v in item.items() if k != "id"}


def short_id(call_id: str) -> str:
    """Return a call id that is short enough for the provider."""
    return call_id if len(call_id) <= MAX_ID else digested_id(call_id)


def conversation(messages: Sequence[Message]) -> list[Item]:
    """Render the items of a request. Outputs get the kind that their calls require."""
    items = [item for message in messages for item in message_json(message)]
    kinds = {_call_id(item): kind_of(item) for item in items if kind_of(item) in CALLS}
    requested = {item.get("id") for item in items if kind_of(item) == "mcp_approval_request"}
    kept = [item for item in items if _is_requested(item, requested)]
    return list(
        _with_distinct_ids(_with_matching_kind(item, kinds) for item in _without_blind_calls(kept, kinds))
    )


def _without_blind_calls(items: Sequence[Item], kinds: Mapping[str, str]) -> Iterator[Item]:
    """Yield the items, with a call of the computer as text if its output is no screenshot, which is required.

    The text ends with the output: a message after other open calls would leave them without theirs.
    """
    texts = {
        _call_id(item): _text_of_output(item)
        for item in items
        if kind_of(item) in OUTPUT_KINDS
        and kinds.get(_call_id(item)) == COMPUTER_CALL
        and not (can_answer(kind_of(item), COMPUTER_CALL) and isinstance(item.get("output"), dict))
    }
    for item in items:
        text = texts.get(_call_id(item))
        if text is None or kind_of(item) not in CALLS | OUTPUT_KINDS:
            yield item
        elif kind_of(item) in CALLS:
            call = f"[{COMPUTER_CALL} {dumps(item.get('action'))}]"
            yield {"type": MESSAGE, "role": "assistant", "content": f"{call}\n\n{text}"}


def _with_distinct_ids(items: Iterable[Item]) -> Iterator[Item]:
    seen: set[str] = set()
    for number, item in enumerate(items):
        id, kind = item.get("id"), kind_of(item)
        if isinstance(id, str) and id in seen:
            if kind in ID_PREFIXES or kind in ID_OPTIONAL:
                item = {k: v for k, v in item.items() if k != "id"}
            elif kind in ID_HOSTED:
                item = {**item, "id": digested_id(f"{id}-{number}")}
        elif isinstance(id, str):
            seen.add(id)
        yield item


def _is_requested(item: Item, requested: set[JSON]) -> bool:
    """Return whether an item is not the answer to a request that is no longer in the prompt."""
    return kind_of(item) != "mcp_approval_response" or item.get("approval_request_id") in requested


def _call_id(item: Mapping[str, Any]) -> str:
    return as_text(call_id_of(item))


def _with_matching_kind(item: Item, kinds: Mapping[str, str]) -> Item:
    """Return an output as the kind that its call requires, which differs for generated and odd ones."""
    kind, call = kind_of(item), kinds.get(_call_id(item), "")
    if kind not in OUTPUT_KINDS or not call or can_answer(kind, call):
        return item
    output, text = item.get("output"), _text_of_output(item)
    made: Item = {"type": OUTPUTS[call], "call_id": _call_id(item)}
    match call:
        case "local_shell_call":
            return made | {"type": FUNCTION_OUTPUT, "output": text}
        case "shell_call":
            return made | {"output": shell_output(text)}
        case "apply_patch_call":
            return made | {"status": "failed", "output": text}
    return made | {"output": output if isinstance(output, list) else text}


def _text_of_output(item: Item) -> str:
    output = item.get("output")
    return output if isinstance(output, str) else joined_text(output)[0]


def shell_output(text: str) -> list[JSON]:
    """Return the output of a shell call."""
    return [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]


def instructions(given: JSON) -> str | None:
    """Return another dialect's `system` field as text."""
    return system_text(given) or None


def tool_json(tool: Mapping[str, Any]) -> Item | None:
    """Render a tool definition; one in this dialect is unchanged, None for a server tool of another."""
    if tool.get("type") in ("function", "custom"):
        nested = tool.get("function", tool.get("custom"))
        return {"type": tool["type"], **nested} if isinstance(nested, Mapping) else dict(tool)
    if "input_schema" not in tool and ("type" in tool or "name" not in tool):
        return None if "name" in tool else dict(tool)
    made: Item = {"type": "function", "name": tool.get("name")}
    if tool.get("description"):
        made["description"] = tool["description"]
    return {**made, "parameters": tool.get("input_schema", NO_ARGUMENTS), "strict": False}
