"""Gemini's API (`generateContent`). The `messages` of this dialect are the `contents` of a request.

`recognition` detects contents, `parsing` and `rendering` translate them; `content` and `signatures` contain
the provider's rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compaction.capabilities import Capabilities
from compaction.dialects.base import Dialect, Prompt
from compaction.dialects.blocks import as_user
from compaction.dialects.gemini import content, kinds, parsing, recognition, rendering, signatures
from compaction.dialects.openai_responses.parsing import united
from compaction.dialects.stored import StoredPrompt
from compaction.invariants import pair_repair, pairs
from compaction.invariants.pairs import Pairing
from compaction.invariants.violations import Subject, Violation
from compaction.jsontext import dumps, loads_bytes
from compaction.messages import JSON, Message, Part, Role, Text, leading_system


class Gemini(Dialect):
    """Gemini's API. A prompt's `system` is the `systemInstruction` of a request."""

    name = kinds.NAME
    label = "Gemini"
    is_distinct = True
    pairing = Pairing(
        merges_messages=True,
        unique_ids=False,
        missing_rule="G1",
        order_rule="G1",
        orphan_rule="G1",
        duplicate_rule="G1",
    )

    message_error = staticmethod(recognition.message_error)
    recognizes = staticmethod(recognition.recognizes)
    recognizes_tool = staticmethod(recognition.recognizes_tool)
    read = staticmethod(parsing.read)
    render_message = staticmethod(rendering.message_json)

    def render_prompt(
        self, messages: Sequence[Message], *, system: JSON, tools: JSON, capabilities: Capabilities
    ) -> Prompt:
        whole = _with_whole_responses(united(messages))
        lead = leading_system(whole)
        spoken = [as_user(message) if message.role is Role.SYSTEM else message for message in whole[lead:]]
        sound = pair_repair.repair(spoken, pairing=self.pairing, open_end=capabilities.prefill)
        items = content.with_opening(rendering.conversation(sound))
        return Prompt(
            format=self.name,
            messages=signatures.repair(items) if capabilities.thought_signatures else items,
            system=rendering.system_instruction(system, whole[:lead]),
            tools=rendering.tools_json(tools) or None,
        )

    def tool_definition(self, *, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, JSON]:
        function = rendering.declaration(name=name, description=description, schema=schema)
        return {"functionDeclarations": [function]}

    is_unsigned = staticmethod(signatures.is_unsigned)

    def violations(self, subject: Subject) -> Iterator[Violation]:
        yield from pairs.violations(subject, self.pairing)
        yield from content.violations(subject)
        yield from signatures.violations(subject)

    def needs_repair(self, part: Part) -> bool:
        return isinstance(part, Text) and not part.text

    def join_stored(self, stored: StoredPrompt, capabilities: Capabilities) -> dict[str, bytes] | None:
        messages = stored.messages
        if not messages.data or messages.first_role == Role.ASSISTANT:
            return None
        if capabilities.thought_signatures and messages.has_unsigned_calls:
            return None
        fields = {"messages": b"[%b]" % messages.data}
        if stored.system is not None:
            given = loads_bytes(stored.system)
            made = rendering.system_instruction(given, ())
            fields |= {"system": stored.system if made == given else dumps(made).encode()} if made else {}
        if stored.tools is not None:
            tools = loads_bytes(stored.tools)
            made = rendering.tools_json(tools)
            fields |= {"tools": stored.tools if made == tools else dumps(made).encode()} if made else {}
        return fields


def _with_whole_responses(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with consecutive contents of one role as one, if several have calls or responses.

    Some SDKs keep each part of a streamed response as a content. The numbers of the calls include all.
    """
    out: list[Message] = []
    for message in messages:
        first = _first_of(out, message) if _has_calls(message) else None
        if first is not None:
            joined = [*out[first:], message]
            parts = [part for each in joined for part in (each.source or {})["parts"]]
            role, read, is_sound, source = parsing.read({**(message.source or {}), "parts": parts})
            out[first:] = [replace(out[first], role=role, parts=read, source=source, patched=not is_sound)]
        else:
            out.append(message)
    return out


def _first_of(messages: Sequence[Message], following: Message) -> int | None:
    """Return the index of the content with calls or responses that a content continues, or None."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role is not following.role or not _is_unedited(messages[index]):
            return None
        if _has_calls(messages[index]):
            return index
    return None


def _has_calls(message: Message) -> bool:
    """Return whether an unedited content has calls of functions or responses to them."""
    return _is_unedited(message) and bool(pairs.calls_of(message) or pairs.results_of(message))


def _is_unedited(message: Message) -> bool:
    is_edited = any(getattr(part, "patched", False) for part in message.parts)
    has_parts = message.source is not None and isinstance(message.source.get("parts"), list)
    return message.format == kinds.NAME and has_parts and not is_edited
