"""Messages, tools and usage in logs of Inspect, converted to Anthropic's format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from compaction.messages import Usage
from importers.values import arguments_of, disjoint_usage, embedded_file, mapping_of, tokens_of

_ATTACHMENT = re.compile(r"attachment://([0-9a-f]+)")


class Attachments:
    """Long strings and files, which a sample stores once and refers to by their hash."""

    def __init__(self, attachments: Mapping[str, Any]) -> None:
        self._attachments = attachments

    def resolved(self, value: Any) -> Any:
        """Return a value with the attachments in place of the references."""
        if isinstance(value, str):
            return _ATTACHMENT.sub(self._content, value) if "attachment://" in value else value
        if isinstance(value, Mapping):
            return {key: self.resolved(each) for key, each in value.items()}
        return [self.resolved(each) for each in value] if isinstance(value, list) else value

    def _content(self, match: re.Match[str]) -> str:
        return str(self._attachments.get(match[1], match[0]))


def system_of(messages: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the system prompt of a request."""
    texts = [_text(message) for message in messages if message["role"] == "system"]
    return "\n\n".join(filter(None, texts)) or None


def bodies_of(messages: Iterable[Mapping[str, Any]], *, is_anthropic: bool) -> list[dict[str, Any]]:
    """Return the messages of a request, without its system prompt. Results of one answer are one message.

    Only Anthropic's own reasoning keeps its signature (`is_anthropic`).
    """
    bodies: list[dict[str, Any]] = []
    for message in messages:
        role = message["role"]
        if role == "tool":
            result = _tool_result(message)
            if bodies and _is_results(bodies[-1]):
                bodies[-1]["content"].append(result)
            else:
                bodies.append({"role": "user", "content": [result]})
        elif role in ("user", "assistant"):
            content = _blocks(message.get("content"), is_anthropic=is_anthropic)
            content += [_tool_use(call) for call in message.get("tool_calls") or ()]
            bodies += [{"role": role, "content": content}] if content else []
        elif role != "system":
            raise ValueError(f"{role!r} is not a role")
    return bodies


def tools_of(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """Return the tools of a request."""
    found = [
        {
            "name": tool["name"],
            "description": str(tool.get("description") or ""),
            "input_schema": _without_nulls(mapping_of(tool.get("parameters"))),
        }
        for tool in tools
    ]
    return found or None


def usage_of_call(usage: Mapping[str, Any]) -> Usage | None:
    """Return the usage of a call. For some providers, older versions count cached tokens as input as well."""
    total = tokens_of(usage, "input_tokens")
    read, write = tokens_of(usage, "input_tokens_cache_read"), tokens_of(usage, "input_tokens_cache_write")
    output = tokens_of(usage, "output_tokens")
    is_contained = read + write <= total and tokens_of(usage, "total_tokens") == total + output
    uncached = total - read - write if is_contained else total
    return disjoint_usage(uncached=uncached, read=read, write=write, output=output)


def _is_results(body: Mapping[str, Any]) -> bool:
    return bool(body["content"][0]["type"] == "tool_result")


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    name, arguments = str(call["function"]), arguments_of(call.get("arguments"))
    return {"type": "tool_use", "id": str(call["id"]), "name": name, "input": arguments}


def _tool_result(message: Mapping[str, Any]) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": str(message["tool_call_id"])}
    if error := mapping_of(message.get("error")):
        return {**block, "content": str(error.get("message") or ""), "is_error": True}
    content = message.get("content")
    return {
        **block,
        "content": content if isinstance(content, str) else _blocks(content, is_anthropic=False),
    }


def _text(message: Mapping[str, Any]) -> str:
    blocks = _blocks(message.get("content"), is_anthropic=False)
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _blocks(content: Any, *, is_anthropic: bool) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for part in content or () if (block := _block(part, is_anthropic=is_anthropic))]


def _block(part: Mapping[str, Any], *, is_anthropic: bool) -> dict[str, Any] | None:
    match part["type"]:
        case "text":
            return {"type": "text", "text": str(part["text"])} if part.get("text") else None
        case "reasoning":
            return _reasoning(part, is_anthropic=is_anthropic)
        case "image":
            return _file("image", str(part["image"]))
        case "document":
            return _file("document", str(part["document"]))
        case "tool_use":  # by the provider
            return {"type": "text", "text": f"{part['name']}({part['arguments']})\n{part['result']}"}
        case "data":
            return {"type": "text", "text": orjson.dumps(part["data"]).decode()}
        case kind:
            return {"type": "text", "text": f"[{kind}]"}


def _reasoning(part: Mapping[str, Any], *, is_anthropic: bool) -> dict[str, Any] | None:
    """Return reasoning. If it is encrypted, only its summary can be read."""
    text, signature = str(part.get("reasoning") or ""), part.get("signature")
    if part.get("redacted"):
        if is_anthropic and not part.get("summary"):
            return {"type": "redacted_thinking", "data": text}
        text = str(part.get("summary") or "")
    block = {"type": "thinking", "thinking": text}
    if is_anthropic and signature:
        return {**block, "signature": str(signature)}
    return block if text else None


def _file(kind: str, location: str) -> dict[str, Any]:
    """Return an image or document: a data URL, a URL, or the name of a file that is not in the log."""
    if embedded := embedded_file(location):
        mime, data = embedded
        if kind == "image" or mime == "application/pdf":
            return {"type": kind, "source": {"type": "base64", "media_type": mime, "data": data}}
        return {"type": "text", "text": f"[Attached {mime}]"}
    if location.startswith(("http://", "https://")):
        return {"type": kind, "source": {"type": "url", "url": location}}
    return {"type": "text", "text": f"[Attached {kind}: {location[:200]}]"}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
