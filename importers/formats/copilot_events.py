"""Parts of the events of GitHub Copilot CLI, converted to Anthropic's format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from importers.base import ImportedMessage
from importers.values import list_of, mapping_of, time_of

_ENVELOPE = {"type", "data", "id", "timestamp", "parentId"}
_KINDS = ("session", "user", "system", "assistant", "tool", "subagent", "hook", "skill", "permission")


def is_event(value: Mapping[str, Any]) -> bool:
    """Return whether this is an event of a log."""
    return (
        value.keys() >= _ENVELOPE
        and isinstance(value["data"], dict)
        and str(value["type"]).partition(".")[0] in _KINDS
    )


def inserted(event: Mapping[str, Any], text: str) -> ImportedMessage:
    """Return a message that the client inserted."""
    body = {"role": "user", "content": [{"type": "text", "text": text}]}
    at = time_of(event.get("timestamp"))
    return ImportedMessage(body=body, source_id=str(event["id"]), at=at, is_meta=True)


def skill_text(data: Mapping[str, Any]) -> str:
    """Return the message with which the client adds a skill to the conversation."""
    folder = str(data.get("path") or "").replace("\\", "/").rpartition("/")[0]
    base = f"Base directory for this skill: {folder}\n\n" if folder else ""
    return f'<skill-context name="{data["name"]}">\n{base}{data["content"]}\n</skill-context>'


def answer_blocks(data: Mapping[str, Any], calls: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the content of an answer. Other providers' encrypted reasoning is only valid in the session."""
    blocks = _reasoning(mapping_of(data.get("reasoningBlocks")))
    if data.get("reasoningText") and not blocks:
        blocks.append({"type": "thinking", "thinking": str(data["reasoningText"])})
    if data.get("content"):
        blocks.append({"type": "text", "text": str(data["content"])})
    for call in calls:
        arguments = _arguments(call.get("arguments"))
        blocks.append(
            {"type": "tool_use", "id": str(call["toolCallId"]), "name": str(call["name"]), "input": arguments}
        )
    return blocks


def _reasoning(reasoning: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return Anthropic's own reasoning, with its signatures."""
    if reasoning.get("provider") != "anthropic-messages":
        return []
    blocks = map(mapping_of, list_of(reasoning.get("blocks")))
    return [
        {key: block[key] for key in ("type", "thinking", "signature", "data") if block.get(key)}
        for block in blocks
        if block.get("type") in ("thinking", "redacted_thinking")
    ]


def _arguments(arguments: Any) -> Any:
    """Return the arguments of a call as an object. Those of a custom tool are text."""
    if not isinstance(arguments, str):
        return arguments if isinstance(arguments, dict) else {}
    try:
        parsed = orjson.loads(arguments)
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {"input": arguments}
