"""The content of items: no empty messages, JSON objects as arguments, valid ids and text parts (R6).

An output must be of the kind that its call requires (R1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.dialects.openai_responses.kinds import (
    CALLS,
    CUSTOM_CALL,
    FUNCTION_CALL,
    INPUT_TEXT,
    MESSAGE,
    OUTPUT_KINDS,
    OUTPUT_TEXT,
    OUTPUTS,
    REASONING,
    ROLES,
    call_id_of,
    can_answer,
    is_output,
    kind_of,
    text_kind,
)
from compaction.dialects.openai_responses.parsing import has_valid_id, is_id
from compaction.invariants.violations import Subject, Violation
from compaction.jsontext import is_object
from compaction.messages import JSON


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield the violations within each item, and outputs of another kind than their call requires."""
    calls: dict[JSON, str] = {}
    for position, item in enumerate(subject.items):
        for message in _faults(item):
            yield Violation(rule="R6", position=position, message=message)
        if not isinstance(item, Mapping) or not is_id(call_id_of(item)):
            continue
        kind, call = kind_of(item), calls.get(call_id_of(item))
        if kind in CALLS:
            calls[call_id_of(item)] = kind
        elif kind in OUTPUT_KINDS and call and not can_answer(kind, call):
            text = f"`{kind}` cannot answer `{call}`, which requires `{OUTPUTS[call]}`"
            yield Violation(rule="R1", position=position, message=text)


def _faults(item: JSON) -> Iterator[str]:
    if not isinstance(item, Mapping):
        yield "the item is not a JSON object"
        return
    kind = kind_of(item)
    if not has_valid_id(item):
        yield f"the id of a `{kind}` item must have the provider's prefix and at most 64 characters"
    if kind == MESSAGE:
        yield from _message_faults(item)
    elif kind == REASONING and not isinstance(item.get("summary"), list):
        yield "reasoning without a `summary`"
    elif kind == REASONING and item.get("content"):
        yield "reasoning with its plain text in `content`"
    elif kind in CALLS | OUTPUT_KINDS:
        yield from _tool_faults(item, kind)


def _tool_faults(item: Mapping[str, Any], kind: str) -> Iterator[str]:
    if not is_id(call_id_of(item)):
        yield f"`{kind}` without a `call_id` of at most 64 characters"
    if kind == FUNCTION_CALL and not _is_valid_call(item):
        yield "a function call must have a name, and a JSON object as arguments"
    if kind == CUSTOM_CALL and not (item.get("name") and isinstance(item.get("input"), str)):
        yield "a custom tool call must have a name and a string as input"
    if kind in OUTPUT_KINDS and not is_output(kind, item.get("output")):
        yield f"`{kind}` without an `output` of the type that the provider accepts"


def _message_faults(item: Mapping[str, Any]) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or role not in ROLES:
        yield f"unknown role {role!r}"
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield "the message has no content"
        return
    wrong = OUTPUT_TEXT if text_kind(role) == INPUT_TEXT else INPUT_TEXT
    if any(isinstance(part, Mapping) and part.get("type") == wrong for part in content):
        yield f"a message of the {role} contains {wrong}"


def _is_valid_call(item: Mapping[str, Any]) -> bool:
    arguments = item.get("arguments")
    return bool(item.get("name")) and isinstance(arguments, str) and is_object(arguments)
