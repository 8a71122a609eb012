"""OpenAI Responses. The `messages` of this dialect are the items of a request's `input`.

`recognition` detects items, `parsing` and `rendering` translate them; `reasoning` and `content` contain the
provider's rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compaction.capabilities import Capabilities
from compaction.dialects.base import Dialect, Prompt
from compaction.dialects.blocks import are_valid_definitions, tool_definitions
from compaction.dialects.openai_responses import content, kinds, parsing, reasoning, recognition, rendering
from compaction.dialects.stored import StoredPrompt
from compaction.invariants import pair_repair, pairs, server_tools
from compaction.invariants.pairs import Pairing
from compaction.invariants.programs import PROGRAM, PROGRAM_OUTPUT, caller_of
from compaction.invariants.violations import Subject, Violation
from compaction.jsontext import dumps, loads_bytes
from compaction.messages import JSON, Message, Opaque, Part, Role, Thinking, ToolCall, ToolResult

#: Marks of an open response in `next_calls`: reasoning without a following item, and the first output.
_REASONING, _ANSWERED = "<reasoning>", "<answered>"


class OpenAIResponses(Dialect):
    """OpenAI's Responses API. A prompt's `system` is the `instructions` of a request."""

    name = kinds.NAME
    label = "OpenAI Responses"
    pairing = Pairing(
        merges_messages=True,
        unique_ids=True,
        missing_rule="R1",
        order_rule="R1",
        orphan_rule="R1",
        duplicate_rule="R1",
    )

    message_error = staticmethod(recognition.message_error)
    recognizes = staticmethod(recognition.recognizes)
    recognizes_tool = staticmethod(recognition.recognizes_tool)
    read = staticmethod(parsing.read)
    render_message = staticmethod(rendering.message_json)
    after_edits = staticmethod(reasoning.without_orphaned_ids)

    def render_prompt(
        self, messages: Sequence[Message], *, system: JSON, tools: JSON, capabilities: Capabilities
    ) -> Prompt:
        whole = server_tools.repair(messages)
        sound = pair_repair.repair(whole, pairing=self.pairing, open_end=capabilities.prefill)
        items = rendering.conversation(reasoning.repair(sound))
        definitions = tool_definitions(tools, rendering.tool_json) or None
        return Prompt(
            format=self.name, messages=items, system=rendering.instructions(system), tools=definitions
        )

    def tool_definition(self, *, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, JSON]:
        return {
            "type": "function",
            "name": name,
            "description": description,
            "parameters": schema,
            "strict": False,
        }

    def violations(self, subject: Subject) -> Iterator[Violation]:
        yield from pairs.violations(subject, self.pairing)
        yield from server_tools.violations(subject, rule="R1")
        yield from reasoning.violations(subject)
        yield from content.violations(subject)

    def needs_repair(self, part: Part) -> bool:
        match part:
            case Thinking(signature=signature):
                return signature is None
            case Opaque(kind=kind):
                return kind in {"mcp_approval_response", PROGRAM, PROGRAM_OUTPUT}
            case ToolCall() | ToolResult():
                return bool(caller_of(part))
        return False

    def next_calls(self, open_calls: tuple[str, ...], message: Message) -> tuple[tuple[str, ...], bool]:
        """Return the open calls after an item. The calls of a response, and their outputs, are items."""
        waiting = tuple(call for call in open_calls if call not in (_REASONING, _ANSWERED))
        if message.role is Role.ASSISTANT:
            if reasoning.is_reasoning(message):
                return (*waiting, _REASONING), _ANSWERED not in open_calls
            calls = tuple(_open_call(call.call_id, _kind(message)) for call in pairs.calls_of(message))
            return (*waiting, *calls), _ANSWERED not in open_calls and not set(calls) & set(waiting)
        results = pairs.results_of(message)
        if not results:
            return (), not open_calls
        answered = {
            _open_call(result.call_id, call): kinds.can_answer(_kind(message), call)
            for result in results
            for call in kinds.CALLS
        }
        left = tuple(call for call in waiting if call not in answered)
        is_sound = len(left) + 1 == len(waiting) and _REASONING not in open_calls
        is_sound = is_sound and all(answered.get(call, True) for call in waiting)
        return ((_ANSWERED, *left) if left else ()), is_sound

    def join_stored(self, stored: StoredPrompt, capabilities: Capabilities) -> dict[str, bytes] | None:
        messages = stored.messages
        if not messages.data or messages.has_repeated_call_ids or messages.has_repeated_ids:
            return None
        if stored.tools and not are_valid_definitions(stored.tools, rendering.tool_json):
            return None
        fields = {"messages": b"[%b]" % messages.data}
        if stored.system is not None:
            text = rendering.instructions(loads_bytes(stored.system))
            fields |= {"system": dumps(text).encode()} if text else {}
        return fields if stored.tools is None else fields | {"tools": stored.tools}


def _kind(message: Message) -> str:
    return kinds.kind_of(message.source or {})


def _open_call(call_id: str, kind: str) -> str:
    """Return the name of an open call: its id, with its kind unless it is a function.

    An output of another kind closes the call, but must be rendered.
    """
    return call_id if kind == kinds.FUNCTION_CALL else f"<{kind}>{call_id}"
