"""Contents: the first one is the user's (G2), and none is empty (G3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compaction.dialects.blocks import OPENING
from compaction.dialects.gemini.kinds import CALL, MODEL, RESPONSE, SIGNATURE, TEXT, USER, spelled, value_of
from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield the violations of the order of roles, and within each content."""
    for position, item in enumerate(subject.items):
        role = item.get("role") if isinstance(item, Mapping) else None
        if role not in (USER, MODEL):
            yield Violation(rule="G2", position=position, message="the role must be `user` or `model`")
        elif position == 0 and role == MODEL:
            yield Violation(rule="G2", position=0, message="the first content must be from the user")
        for message in _faults(item):
            yield Violation(rule="G3", position=position, message=message)


def with_opening(items: list[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """Return contents that begin with one of the user."""
    if items and items[0].get("role") == MODEL:
        return [{"role": USER, "parts": [{"text": OPENING}]}, *items]
    return items


def _faults(item: JSON) -> Iterator[str]:
    parts = item.get("parts") if isinstance(item, Mapping) else None
    if not isinstance(parts, list) or not parts:
        yield "the content has no parts"
        return
    for part in parts:
        if not isinstance(part, Mapping) or not part:
            yield "a part is not an object with content"
        elif part.get(TEXT) == "" and spelled(part, SIGNATURE) is None:
            yield "empty text part"
        yield from _function_faults(part) if isinstance(part, Mapping) else ()


def _function_faults(part: Mapping[str, JSON]) -> Iterator[str]:
    for kind, field in ((CALL, "args"), (RESPONSE, "response")):
        value = value_of(part, kind)
        if value is None:
            continue
        if not isinstance(value, Mapping) or not value.get("name"):
            yield f"`{kind}` without a name"
        elif not isinstance(value.get(field, {} if kind == CALL else None), Mapping):
            yield f"`{kind}.{field}` is not an object"
