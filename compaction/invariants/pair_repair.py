"""Repair of tool pairs (A1, A2, A3, A6; C1, C2): place each result directly after its call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from operator import is_

from compaction.invariants.pairs import Pairing, calls_of, matches, results_end, results_of, unit_end
from compaction.messages import Message, Part, Role, Text, ToolCall, ToolResult

NO_RESULT = "[No result of this tool call was recorded.]"
ORPHAN = "[Result of a tool call that is not part of this conversation]"


def repair(messages: Sequence[Message], *, pairing: Pairing, open_end: bool) -> tuple[Message, ...]:
    """Return the messages with each result directly after its call; the same objects if they are valid.

    Late and early results move to their call, a missing result is replaced by a note, a result without a call
    becomes text, and a second result of one call is dropped. With `open_end`, calls in the last message need
    no result.
    """
    if _is_sound(messages, pairing, open_end):
        return tuple(messages)
    return tuple(_Regrouping(_with_unique_ids(messages), pairing, open_end).run())


def _is_sound(messages: Sequence[Message], pairing: Pairing, open_end: bool) -> bool:
    seen: set[str] = set()
    index = 0
    while index < len(messages):
        message = messages[index]
        if message.role is not Role.ASSISTANT:
            if results_of(message):
                return False
            index += 1
            continue
        end = unit_end(messages, index, pairing)
        unit = messages[index:end]
        if any(map(results_of, unit)):
            return False
        ids = [call.call_id for member in unit for call in calls_of(member)]
        if not ids:
            index = end
            continue
        if not seen.isdisjoint(ids) or "" in ids:
            return False
        if pairing.unique_ids:
            seen.update(ids)
        if end == len(messages) and open_end:
            return len(set(ids)) == len(ids)
        answered = results_end(messages, end, ids)
        if answered is None:
            return False
        index = answered
    return True


def _with_unique_ids(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with a suffix on each repeated call id and the id of its result."""
    fresh: dict[tuple[int, int], str] = {}
    used: set[str] = set()
    numbers: dict[str, int] = {}  # the next suffix of each id: calls of Gemini often have the same one
    for index, message in enumerate(messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolCall) and not part.server:
                stem = name = part.call_id or "call"
                while name in used:
                    number = numbers.get(stem, 2)
                    name, numbers[stem] = f"{stem}-{number}", number + 1
                used.add(name)
                fresh[index, place] = name
    answered = {answer: fresh[call] for answer, call in matches(messages).items()}
    renamed = fresh | answered
    return [_renamed(message, index, renamed) for index, message in enumerate(messages)]


def _renamed(message: Message, index: int, renamed: dict[tuple[int, int], str]) -> Message:
    parts = tuple(
        replace(part, call_id=fresh, patched=True)
        if isinstance(part, ToolCall | ToolResult)
        and (fresh := renamed.get((index, place), part.call_id)) != part.call_id
        else part
        for place, part in enumerate(message.parts)
    )
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return replace(message, parts=parts, patched=True)


class _Regrouping:
    """One pass over messages with unique call ids that places the results of each call directly after it."""

    def __init__(self, messages: list[Message], pairing: Pairing, open_end: bool) -> None:
        self._messages = messages
        self._pairing = pairing
        self._open_end = open_end
        self._called = {c.call_id: at for at, m in enumerate(messages) for c in calls_of(m)}
        self._results = self._chosen_results()
        self._out: list[Message] = []

    def _chosen_results(self) -> dict[str, tuple[int, ToolResult]]:
        """Map each call to the first result after it, or else to the first one before it."""
        chosen: dict[str, tuple[int, ToolResult]] = {}
        for at, message in enumerate(self._messages):
            for result in results_of(message):
                call_at = self._called.get(result.call_id)
                if call_at is None:
                    continue
                current = chosen.get(result.call_id)
                if current is None or current[0] < call_at <= at:
                    chosen[result.call_id] = (at, result)
        return chosen

    def run(self) -> list[Message]:
        messages, index = self._messages, 0
        while index < len(messages):
            if messages[index].role is not Role.ASSISTANT:
                self._emit_rest(messages[index])
                index += 1
                continue
            end = unit_end(messages, index, self._pairing)
            for message in messages[index:end]:
                self._emit_rest(message)
            index = self._emit_results(index, end)
        return self._out

    def _emit_results(self, start: int, end: int) -> int:
        """Write the results of the calls in messages `start` to `end`; return the next message's index."""
        ids = [call.call_id for message in self._messages[start:end] for call in calls_of(message)]
        if not ids or (end == len(self._messages) and self._open_end and not self._results.keys() & set(ids)):
            return end
        answered = results_end(self._messages, end, ids)
        if answered is not None:
            self._out += self._messages[end:answered]
            return answered
        by_message: dict[int, list[Part]] = defaultdict(list)
        for call_id in ids:
            if call_id in self._results:
                at, result = self._results[call_id]
                by_message[at].append(result)
        missing = [call_id for call_id in ids if call_id not in self._results]
        alone = len(by_message) + len(missing) == 1
        for at, parts in by_message.items():
            message = self._messages[at]
            made = replace(message, role=Role.TOOL, parts=tuple(parts), patched=True)
            self._out.append(_with_parts(message, parts, Role.TOOL) if alone else made)
        caller = self._messages[end - 1]
        self._out += (_missing_result(caller, call_id) for call_id in missing)
        return end

    def _emit_rest(self, message: Message) -> None:
        """Write everything except results; a result without a call becomes text."""
        rest: list[Part] = []
        for part in message.parts:
            if not isinstance(part, ToolResult) or part.server:
                rest.append(part)
            elif part.call_id not in self._called:
                rest.append(Text(text=f"{ORPHAN}\n{part.text}", patched=True))
        if rest or not message.parts:
            role = Role.USER if message.role is Role.TOOL else message.role
            self._out.append(_with_parts(message, rest, role))


def _with_parts(message: Message, parts: list[Part], role: Role) -> Message:
    is_same = len(parts) == len(message.parts) and all(map(is_, parts, message.parts))
    if is_same and (message.role is role or message.role is not Role.ASSISTANT):
        return message
    return replace(message, role=role, parts=tuple(parts), patched=True)


def _missing_result(caller: Message, call_id: str) -> Message:
    """Return a placeholder result in the caller's dialect, so that its id is rendered like the call's."""
    result = ToolResult(call_id=call_id, text=NO_RESULT, patched=True)
    return Message(position=caller.position, role=Role.TOOL, parts=(result,), format=caller.format)
