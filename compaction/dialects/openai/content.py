"""Message content: no empty messages (C3), only objects as arguments (C4), no unknown fields (C5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compaction.dialects.openai.parsing import KNOWN_FIELDS
from compaction.invariants.violations import Subject, Violation
from compaction.jsontext import is_object
from compaction.messages import JSON


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield the violations within each message."""
    for position, item in enumerate(subject.items):
        for rule, message in _faults(item):
            yield Violation(rule=rule, position=position, message=message)


def _faults(item: JSON) -> Iterator[tuple[str, str]]:
    if not isinstance(item, Mapping):
        yield "C3", "the message is not a JSON object"
        return
    calls = item.get("tool_calls") or []
    legacy = item.get("function_call") or item.get("audio")
    if not isinstance(item.get("content"), str | list) and not (calls or legacy):
        yield "C3", "the message has neither content nor tool calls"
    if item.get("role") == "tool" and not item.get("tool_call_id"):
        yield "C3", "tool message without `tool_call_id`"
    for call in calls if isinstance(calls, list) else [calls]:
        if not _has_object_arguments(call):
            yield "C4", "the arguments of a tool call are not a JSON object"
    unknown = sorted(map(str, item.keys() - KNOWN_FIELDS))
    if unknown:
        yield "C5", f"unknown fields: {', '.join(unknown)}"


def _has_object_arguments(call: JSON) -> bool:
    if not isinstance(call, Mapping):
        return False
    if call.get("type") == "custom":
        return True
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    return isinstance(arguments, str) and is_object(arguments)
