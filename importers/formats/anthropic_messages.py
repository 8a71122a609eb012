"""Plain JSON and JSONL in the format of Anthropic's Messages API: conversations, and logged requests.

The values of a log are the same as in OpenAI's chat format (see `openai_chat.py`). A request contains its
system prompt as `system`; a response is a message with `usage`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from importers.base import ImportedMessage, LogFile
from importers.calls import CallSeries, logged_request
from importers.formats.openai_chat import OpenAIChatImporter
from importers.jsonlines import Record, values
from importers.turns import TurnBuilder, in_one_message
from importers.values import mapping_of

#: Types of blocks that OpenAI's chat format does not have.
_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")

#: Roles of messages that only OpenAI's chat format has.
_CHAT_ROLES = ("developer", "tool", "function")

#: Values of a log that are read to recognize it: its first messages may only contain text.
_FIRST_VALUES = 20


class AnthropicSeries(CallSeries):
    """One conversation in Anthropic's format."""

    def builder(self) -> TurnBuilder:
        return TurnBuilder(in_one_message)

    def body(self, message: Mapping[str, Any]) -> dict[str, Any]:
        content = message["content"]
        if isinstance(content, list):
            content = [_sent(block) for block in content]
        return {"role": message["role"], "content": content}

    def calls(self, body: Mapping[str, Any]) -> Sequence[str]:
        return _ids(body, "tool_use", "id")

    def checked(self, message: Mapping[str, Any]) -> dict[str, Any]:
        body = super().checked(message)
        _ids(body, "tool_result", "tool_use_id")
        return body

    def add_input(self, message: ImportedMessage) -> None:
        answered = _ids(message.body, "tool_result", "tool_use_id")
        if answered:
            self._turns.result(answered[0], message)
        else:
            self._turns.add(message)


class AnthropicMessagesImporter(OpenAIChatImporter):
    """Reads plain JSON and JSONL of Anthropic's messages."""

    name = "anthropic-messages"
    label = "Anthropic messages (JSON or JSONL)"
    format = "anthropic"
    series = AnthropicSeries

    def recognizes(self, log: LogFile) -> bool:
        if not super().recognizes(log):
            return False
        records = islice(values(log), _FIRST_VALUES)
        return any(_is_anthropic(record.value) for record in records if isinstance(record, Record))


def _is_anthropic(value: Any) -> bool:
    """Return whether a value contains what only Anthropic's format has."""
    if isinstance(value, list):
        return any(_is_anthropic(item) for item in value)
    record = mapping_of(value)
    request = logged_request(record)
    if isinstance(request.get("messages"), list):
        messages = list(map(mapping_of, request["messages"]))
        if any("tool_calls" in message or message.get("role") in _CHAT_ROLES for message in messages) or (
            messages and messages[0].get("role") == "system"
        ):
            return False  # some programs add `system` to chat messages
        is_answered = mapping_of(record.get("response")).get("type") == "message"
        return is_answered or "system" in request or _is_anthropic(messages)
    content = record.get("content")
    return isinstance(content, list) and any(mapping_of(part).get("type") in _BLOCKS for part in content)


def _sent(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block of a response or request without empty fields or cache breakpoints."""
    return {key: value for key, value in block.items() if value is not None and key != "cache_control"}


def _ids(body: Mapping[str, Any], kind: str, key: str) -> list[str]:
    content = body["content"]
    parts = content if isinstance(content, list) else ()
    return [str(part[key]) for part in parts if part.get("type") == kind]
