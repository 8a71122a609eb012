"""Thought signatures (G4): Gemini 3 requires that of the first call in each step of the current turn.

The turn begins with the last content of the user that is not a function's response. A signature is next to
its call in the same part, so that edits keep it. Calls of other models have none.
Source: https://ai.google.dev/gemini-api/docs/thought-signatures
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from compaction.dialects.gemini.kinds import CALL, MODEL, RESPONSE, SIGNATURE, snake, spelled
from compaction.invariants.violations import Subject, Violation
from compaction.jsontext import loads_bytes
from compaction.messages import JSON

#: With this signature, Gemini accepts a call that another model made or that lost its own.
ACCEPTED = "skip_thought_signature_validator"

_CALL_FIELD = re.compile(rf'"(?:{CALL}|{snake(CALL)})"\s*:'.encode())


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield each call that lacks its signature."""
    if subject.capabilities.thought_signatures:
        items = subject.items
        start = next((at for at in range(len(items) - 1, -1, -1) if _begins_turn(items, at)), 0)
        for position, _ in _unsigned(items, start):
            text = "the first function call of a step lacks its `thoughtSignature`"
            yield Violation(rule="G4", position=position, message=text)


def is_unsigned(message: bytes) -> bool:
    """Return whether the first call in the JSON of a content lacks its signature."""
    return _CALL_FIELD.search(message) is not None and any(_unsigned([loads_bytes(message)], 0))


def repair(items: list[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """Return the contents with a signature that is accepted in place of each missing one.

    Those of earlier turns get one too, so that a prompt begins with the whole previous one.
    """
    repaired = list(items)
    for position, index in _unsigned(items, 0):
        parts = list(repaired[position]["parts"])
        field = SIGNATURE if CALL in parts[index] else snake(SIGNATURE)
        parts[index] = {**parts[index], field: ACCEPTED}
        repaired[position] = {**repaired[position], "parts": parts}
    return repaired


def _unsigned(items: Sequence[JSON], start: int) -> Iterator[tuple[int, int]]:
    """Yield the content and part of each first call of a step, from `start` on, that lacks its signature."""
    is_first = True
    for position in range(start, len(items)):
        item = items[position]
        if not isinstance(item, Mapping) or item.get("role") != MODEL:
            is_first = True
            continue
        for index, part in enumerate(_parts(item)):
            if spelled(part, CALL) is None:
                continue
            if is_first and spelled(part, SIGNATURE) is None:
                yield position, index
            is_first = False


def _begins_turn(items: Sequence[JSON], at: int) -> bool:
    """Return whether a content is the user's, and no response is in it or in those directly before it."""
    while at >= 0 and isinstance(item := items[at], Mapping) and item.get("role") != MODEL:
        if any(spelled(part, RESPONSE) is not None for part in _parts(item)):
            return False
        at -= 1
        if at < 0 or not isinstance(items[at], Mapping) or items[at].get("role") == MODEL:
            return True
    return False


def _parts(item: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """Return the parts. Anything else than an object counts as an empty one, so that indices stay."""
    parts = item.get("parts")
    return [part if isinstance(part, Mapping) else {} for part in parts] if isinstance(parts, list) else []
