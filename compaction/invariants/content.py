"""What a message holds: A8 (no empty text) at Anthropic, C3 to C5 at OpenAI, and JSON that is no message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.formats import openai
from compaction.invariants.violations import Subject, Violation
from compaction.jsontext import is_object
from compaction.messages import JSON


def violations(subject: Subject) -> Iterator[Violation]:
    check = _anthropic if subject.anthropic else _openai
    for position, item in enumerate(subject.items):
        if isinstance(item, Mapping):
            found = check(item)
        else:
            found = iter([("A8" if subject.anthropic else "C3", "no JSON object")])
        for rule, told in found:
            yield Violation(rule=rule, position=position, message=told)


def _anthropic(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    content = item.get("content")
    if not isinstance(content, str | list) or not content:
        yield "A8", "the message has no content"
        return
    for block in [content] if isinstance(content, str) else content:
        if _is_empty_text(block):
            yield "A8", "an empty text block"
        nested = block.get("content") if isinstance(block, Mapping) else None
        if isinstance(nested, list) and any(_is_empty_text(inner) for inner in nested):
            yield "A8", "an empty text block in a tool result"


def _is_empty_text(block: JSON) -> bool:
    if isinstance(block, str):
        return not block.strip()
    if not isinstance(block, Mapping) or block.get("type") != "text":
        return not isinstance(block, Mapping)
    text = block.get("text")
    return not isinstance(text, str) or not text.strip()


def _openai(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    calls = item.get("tool_calls") or []
    legacy = item.get("function_call") or item.get("audio")
    if not isinstance(item.get("content"), str | list) and not (calls or legacy):
        yield "C3", "the message has neither content nor tool calls"
    if item.get("role") == "tool" and not item.get("tool_call_id"):
        yield "C3", "a tool message without `tool_call_id`"
    for call in calls if isinstance(calls, list) else [calls]:
        if not _has_object(call):
            yield "C4", "the arguments of a tool call are no JSON object"
    unknown = sorted(map(str, item.keys() - openai.KNOWN_FIELDS))
    if unknown:
        yield "C5", f"fields that the format does not have: {', '.join(unknown)}"


def _has_object(call: JSON) -> bool:
    if not isinstance(call, Mapping):
        return False
    if call.get("type") == "custom":
        return True
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    return isinstance(arguments, str) and is_object(arguments)
