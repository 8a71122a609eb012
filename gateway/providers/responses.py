"""OpenAI's Responses API. Its items are converted to Chat Completions messages, as which they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from gateway.providers.base import Answer, items, mapping, text

#: Events that end a stream. Each contains the whole response.
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


def is_compaction(body: Mapping[str, Any]) -> bool:
    """Return whether a request requests a compaction of its input."""
    return any(item.get("type") == "compaction_trigger" for item in items(body.get("input")))


def history(fields: Mapping[str, Any]) -> bytes:
    """Return the request's history as `messages`, `system` and `tools`."""
    sent = fields.get("input")
    given = [{"role": "user", "content": sent}] if isinstance(sent, str) else items(sent)
    value: dict[str, Any] = {"messages": list(messages(given))}
    if text(fields.get("instructions")):
        value["system"] = fields["instructions"]
    tools = [_tool(tool) for tool in items(fields.get("tools"))]
    return orjson.dumps(value | ({"tools": tools} if tools else {}))


def answer(response: Mapping[str, Any]) -> Answer:
    """Return the answer in a whole response."""
    found = list(messages(items(response.get("output"))))
    is_whole = response.get("status") in {"completed", "incomplete", None} and found
    return Answer(
        message=_united(found) if is_whole else None,
        id=text(response.get("id")),
        model=text(response.get("model")),
        usage=mapping(response.get("usage")),
    )


def answer_of_events(events: Sequence[Mapping[str, Any]]) -> Answer:
    """Return the answer of a stream. The last event may lack the items, which also have separate events."""
    done = [
        mapping(event.get("item")) for event in events if event.get("type") == "response.output_item.done"
    ]
    for event in events:
        if event.get("type") in _ENDS:
            response = dict(mapping(event.get("response")))
            return answer(response | ({"output": done} if done else {}))
    return Answer()


def messages(given: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield items as messages. Consecutive items of one answer become one message, as in Chat Completions."""
    open_answer: dict[str, Any] | None = None
    for item in given:
        message = _message(item)
        if message is None:
            continue
        if message["role"] == "assistant":
            open_answer = message if open_answer is None else _united([open_answer, message])
            continue
        if open_answer is not None:
            yield open_answer
            open_answer = None
        yield message
    if open_answer is not None:
        yield open_answer


def _message(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an item as a message, or None for reasoning and items without content."""
    kind = text(item.get("type")) or "message"
    if kind == "message":
        return {"role": text(item.get("role")) or "user", "content": _content(item.get("content"))}
    if kind.endswith("_call_output"):
        return {
            "role": "tool",
            "tool_call_id": text(item.get("call_id")),
            "content": _output(item.get("output")),
        }
    if kind.endswith("_call"):
        return {"role": "assistant", "content": None, "tool_calls": [_call(kind, item)]}
    return None


def _call(kind: str, item: Mapping[str, Any]) -> dict[str, Any]:
    name = text(item.get("name")) or kind.removesuffix("_call")
    arguments = item.get("arguments")
    if not isinstance(arguments, str):
        given = {"input": item["input"]} if "input" in item else mapping(item.get("action"))
        arguments = orjson.dumps(given).decode()
    call_id = text(item.get("call_id")) or text(item.get("id"))
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _content(content: Any) -> Any:
    """Return content as a string if it is only text, else as Chat Completions parts."""
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in items(content)]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "input_image":
        return {"type": "image_url", "image_url": {"url": text(part.get("image_url"))}}
    return {"type": "text", "text": text(part.get("text")) or text(part.get("refusal"))}


def _output(output: Any) -> str:
    if isinstance(output, str):
        return output
    found = [text(part.get("text")) for part in items(output) if part.get("text")]
    return "\n".join(found) if found else orjson.dumps(output).decode()


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool definition in the format of Chat Completions. Other kinds of tools are unchanged."""
    if tool.get("type") != "function" or "function" in tool:
        return dict(tool)
    names = ("name", "description", "parameters", "strict")
    return {"type": "function", "function": {name: tool[name] for name in names if name in tool}}


def _united(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Merge assistant messages into one."""
    contents = [part["content"] for part in parts if isinstance(part.get("content"), str) and part["content"]]
    calls = [call for part in parts for call in part.get("tool_calls", ())]
    united: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(contents) if contents else None}
    return united | ({"tool_calls": calls} if calls else {})
