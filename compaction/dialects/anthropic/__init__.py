"""Anthropic Messages.

`recognition` detects messages, `parsing` and `rendering` translate them; the other modules contain the
provider's rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compaction.capabilities import Capabilities
from compaction.dialects.anthropic import (
    content,
    limits,
    parsing,
    recognition,
    rendering,
    roles,
    thinking,
)
from compaction.dialects.base import Dialect, Prompt
from compaction.dialects.blocks import are_valid_definitions, tool_definitions
from compaction.dialects.openai_responses.parsing import united
from compaction.dialects.stored import StoredPrompt
from compaction.invariants import pair_repair, pairs, server_tools
from compaction.invariants.pairs import Pairing
from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON, Message, Opaque, Part, Thinking, leading_system
from compaction.provider_summary import COMPACTION

_RULES = (roles, content, thinking, limits)


class Anthropic(Dialect):
    """Anthropic's Messages API."""

    name = parsing.NAME
    label = "Anthropic Messages"
    pairing = Pairing(
        merges_messages=True,
        unique_ids=True,
        missing_rule="A1",
        order_rule="A2",
        orphan_rule="A1",
        duplicate_rule="A3",
    )

    message_error = staticmethod(recognition.message_error)
    recognizes = staticmethod(recognition.recognizes)
    recognizes_tool = staticmethod(recognition.recognizes_tool)
    read = staticmethod(parsing.read)
    render_message = staticmethod(rendering.message_json)

    def render_prompt(
        self, messages: Sequence[Message], *, system: JSON, tools: JSON, capabilities: Capabilities
    ) -> Prompt:
        sound = self._repair(united(messages), capabilities)
        lead = leading_system(sound)
        system_field = rendering.system_field(sound[:lead], system) or None
        definitions = tool_definitions(tools, rendering.tool_json)
        items = roles.frame(rendering.conversation(sound[lead:]), capabilities)
        items = content.without_trailing_whitespace(items)
        items = limits.within_breakpoints(items, system_field, definitions)
        return Prompt(format=self.name, messages=items, system=system_field, tools=definitions or None)

    def _repair(self, messages: Sequence[Message], capabilities: Capabilities) -> tuple[Message, ...]:
        """Return messages that the provider accepts; the same objects if they are valid."""
        lead = leading_system(messages)
        sound = thinking.repair(messages[lead:])
        if capabilities.bound_thinking:
            sound = thinking.without_outdated(sound)
        paired = pair_repair.repair(sound, pairing=self.pairing, open_end=capabilities.prefill)
        # After the pairs: a result without a call has become text, which ends the turn of a program.
        complete = server_tools.repair(paired)
        return (*messages[:lead], *roles.system_to_user(complete, capabilities))

    def tool_definition(self, *, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, JSON]:
        return {"name": name, "description": description, "input_schema": schema}

    def violations(self, subject: Subject) -> Iterator[Violation]:
        yield from pairs.violations(subject, self.pairing)
        yield from server_tools.violations(subject, rule="A4")
        for rules in _RULES:
            yield from rules.violations(subject)

    def needs_repair(self, part: Part) -> bool:
        if isinstance(part, Thinking):
            # Without a source it is another dialect's reasoning, which has no signature.
            return part.source is not None and not thinking.is_complete(part)
        if isinstance(part, Opaque) and part.kind == COMPACTION:
            return False
        return super().needs_repair(part)

    def join_stored(self, stored: StoredPrompt, capabilities: Capabilities) -> dict[str, bytes] | None:
        if not self._is_joinable(stored, capabilities):
            return None
        fields = {"system": stored.system, "messages": b"[%b]" % stored.messages.data, "tools": stored.tools}
        return {name: data for name, data in fields.items() if data is not None}

    @staticmethod
    def _is_joinable(stored: StoredPrompt, capabilities: Capabilities) -> bool:
        """Check ids (A3), roles (A5, A7, A9), the end (A8), breakpoints (A12) and the tools' dialect."""
        messages = stored.messages
        if not messages.data or messages.has_repeated_ids:
            return False
        if stored.tools and not are_valid_definitions(stored.tools, rendering.tool_json):
            return False
        return (
            stored.breakpoints <= limits.MAX_BREAKPOINTS
            and messages.first_role == "user"
            and (messages.last_role == "user" or capabilities.prefill)
            and not (messages.last_role == "assistant" and content.may_end_with_whitespace(messages.data))
            and not messages.has_system
        )
