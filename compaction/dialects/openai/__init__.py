"""OpenAI Chat Completions.

`recognition` detects messages, `parsing` and `rendering` translate them, `content` validates them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compaction.capabilities import Capabilities
from compaction.dialects.base import Dialect, Prompt
from compaction.dialects.blocks import are_valid_definitions, tool_definitions
from compaction.dialects.openai import content, parsing, recognition, rendering
from compaction.dialects.openai_responses.parsing import united
from compaction.dialects.stored import StoredPrompt
from compaction.invariants import pair_repair, pairs
from compaction.invariants.pairs import Pairing
from compaction.invariants.violations import Subject, Violation
from compaction.jsontext import dumps, loads_bytes
from compaction.messages import JSON, Message


class OpenAI(Dialect):
    """OpenAI's Chat Completions API, which many other providers also offer."""

    name = parsing.NAME
    label = "OpenAI Chat Completions"
    pairing = Pairing(
        merges_messages=False,
        unique_ids=False,
        missing_rule="C1",
        order_rule="C1",
        orphan_rule="C2",
        duplicate_rule="C2",
    )

    message_error = staticmethod(recognition.message_error)
    recognizes = staticmethod(recognition.recognizes)
    recognizes_tool = staticmethod(recognition.recognizes_tool)
    read = staticmethod(parsing.read)
    render_message = staticmethod(rendering.message_json)

    def render_prompt(
        self, messages: Sequence[Message], *, system: JSON, tools: JSON, capabilities: Capabilities
    ) -> Prompt:
        whole = united(messages)
        sound = pair_repair.repair(whole, pairing=self.pairing, open_end=capabilities.prefill)
        items = rendering.system_message(system) + rendering.conversation(sound)
        if not capabilities.reasoning_field:
            items = rendering.without_reasoning(items)
        return Prompt(
            format=self.name, messages=items, tools=tool_definitions(tools, rendering.tool_json) or None
        )

    def tool_definition(self, *, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, JSON]:
        function = {"name": name, "description": description, "parameters": schema}
        return {"type": "function", "function": function}

    def violations(self, subject: Subject) -> Iterator[Violation]:
        yield from pairs.violations(subject, self.pairing)
        yield from content.violations(subject)

    def join_stored(self, stored: StoredPrompt, capabilities: Capabilities) -> dict[str, bytes] | None:
        if not stored.messages.data or stored.messages.has_repeated_ids:
            return None
        if stored.tools and not are_valid_definitions(stored.tools, rendering.tool_json):
            return None
        if not capabilities.reasoning_field and stored.messages.has_reasoning:
            return None
        messages = stored.messages.data
        if stored.system is not None:
            lead = [dumps(item).encode() for item in rendering.system_message(loads_bytes(stored.system))]
            messages = b",".join([*lead, messages])
        fields = {"messages": b"[%b]" % messages}
        return fields if stored.tools is None else fields | {"tools": stored.tools}
