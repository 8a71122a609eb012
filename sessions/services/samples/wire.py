"""The messages and tool definitions of sample sessions, in the dialects of Anthropic and OpenAI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson

from compaction.dialects import get_dialect
from sessions.services.agent_tools import TOOLS
from sessions.services.samples.stories.steps import Call, Step

#: The agent's own tools: name, description and the names of the arguments, which are strings.
_TOOLS = (
    ("Read", "Read a file with line numbers.", ("file_path",)),
    ("Grep", "Search files with a regular expression.", ("pattern", "path", "output_mode")),
    ("Bash", "Run a shell command in the project folder.", ("command",)),
    ("Edit", "Replace text in a file.", ("file_path", "old_string", "new_string")),
)


def tool_definitions(format: str) -> list[dict[str, Any]]:
    """Return the definitions of the agent's tools and of those of contextapp."""
    dialect = get_dialect(format)
    own = [
        dialect.tool_definition(
            name=name,
            description=description,
            schema={"type": "object", "properties": {each: {"type": "string"} for each in names}},
        )
        for name, description, names in _TOOLS
    ]
    return own + [tool.definition(format) for tool in TOOLS.values()]


def user_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant_message(step: Step, calls: Mapping[str, Call], format: str) -> dict[str, Any]:
    """Return the model's response. `calls` are its tool calls by id."""
    if format == "openai":
        message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": id,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": orjson.dumps(call.arguments).decode()},
                }
                for id, call in calls.items()
            ]
        return message
    blocks: list[dict[str, Any]] = []
    if step.thinking:
        signature = uuid5(NAMESPACE_URL, step.thinking).hex * 4
        blocks.append({"type": "thinking", "thinking": step.thinking, "signature": signature})
    if step.text:
        blocks.append({"type": "text", "text": step.text})
    blocks += [
        {"type": "tool_use", "id": id, "name": call.tool, "input": call.arguments}
        for id, call in calls.items()
    ]
    return {"role": "assistant", "content": blocks}


def result_messages(results: Mapping[str, tuple[str, bool]], format: str) -> Sequence[dict[str, Any]]:
    """Return the messages with tool results: text and whether it is an error, by the id of the call."""
    if not results:
        return []
    if format == "openai":
        return [{"role": "tool", "tool_call_id": id, "content": text} for id, (text, _) in results.items()]
    blocks = [
        {"type": "tool_result", "tool_use_id": id, "content": text} | ({"is_error": True} if is_error else {})
        for id, (text, is_error) in results.items()
    ]
    return [{"role": "user", "content": blocks}]
