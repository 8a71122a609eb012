"""A dialect as a contributor would add it: one file. A message is a speaker and a line of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compaction.capabilities import Capabilities
from compaction.dialects.base import Dialect, Prompt, Reading
from compaction.dialects.blocks import as_text
from compaction.invariants import pair_repair
from compaction.invariants.pairs import Pairing
from compaction.messages import JSON, Message, Part, Role, Text, ToolCall, ToolResult

_ROLES = {
    "rules": Role.SYSTEM,
    "person": Role.USER,
    "model": Role.ASSISTANT,
    "call": Role.ASSISTANT,
    "result": Role.TOOL,
}
_SPEAKERS = {Role.SYSTEM: "rules", Role.USER: "person", Role.ASSISTANT: "model"}


class Lines(Dialect):
    """`{"from": "person", "line": "…"}`; `{"from": "call" or "result", "id": "…", "line": "…"}`."""

    name = "lines"
    label = "Lines of text"
    pairing = Pairing(
        merges_messages=False,
        unique_ids=False,
        missing_rule="L1",
        order_rule="L1",
        orphan_rule="L2",
        duplicate_rule="L2",
    )

    def message_error(self, item: JSON) -> str | None:
        known = isinstance(item, Mapping) and item.get("from") in _ROLES
        return None if known else f"`from` must be one of: {', '.join(_ROLES)}"

    def read(self, item: Mapping[str, Any]) -> Reading:
        return _ROLES.get(item.get("from"), Role.USER), (_part(item),), True, item

    def render_message(self, message: Message) -> list[dict[str, JSON]]:
        if message.format == self.name and not message.patched and message.source is not None:
            return [dict(message.source)]
        return [_item(part, message.role) for part in message.parts]

    def render_prompt(
        self, messages: Sequence[Message], *, system: JSON, tools: JSON, capabilities: Capabilities
    ) -> Prompt:
        sound = pair_repair.repair(messages, pairing=self.pairing, open_end=capabilities.prefill)
        items = [item for message in sound for item in self.render_message(message)]
        return Prompt(format=self.name, messages=items, system=system, tools=tools)

    def tool_definition(self, *, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, JSON]:
        return {"tool": name, "does": description}


def _part(item: Mapping[str, Any]) -> Part:
    line, call_id = as_text(item.get("line")), as_text(item.get("id"))
    match item.get("from"):
        case "call":
            return ToolCall(call_id=call_id, name="run", arguments=line, source=item)
        case "result":
            return ToolResult(call_id=call_id, text=line, source=item)
    return Text(text=line)


def _item(part: Part, role: Role) -> dict[str, JSON]:
    match part:
        case ToolCall(call_id=call_id, arguments=arguments):
            return {"from": "call", "id": call_id, "line": arguments}
        case ToolResult(call_id=call_id, text=text):
            return {"from": "result", "id": call_id, "line": text}
    return {"from": _SPEAKERS.get(role, "person"), "line": getattr(part, "text", "")}
