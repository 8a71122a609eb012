"""Repair of tool pairs (A1, A2, A3, A6; C1, C2): every call is answered next to it, whatever was pushed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from compaction.invariants.pairs import answers_end, calls_of, matches, results_of, unit_end
from compaction.messages import Message, Part, Role, Text, ToolCall, ToolResult

NO_RESULT = "[No result of this tool call was recorded.]"
ORPHAN = "[Result of a tool call that is not part of this conversation]"


def repair(messages: Sequence[Message], *, merged: bool, open_end: bool) -> tuple[Message, ...]:
    """The messages with every call answered next to it; the same objects where nothing was wrong.

    A late or early answer moves behind its call, a missing one is said to be missing, an answer without
    a call is told as text, a second answer to one call is dropped. Calls at the very end stay open where
    `open_end` allows it.
    """
    if _is_sound(messages, merged, open_end):
        return tuple(messages)
    return tuple(_Regrouping(_with_unique_ids(messages), merged, open_end).run())


def _is_sound(messages: Sequence[Message], merged: bool, open_end: bool) -> bool:
    seen: set[str] = set()
    index = 0
    while index < len(messages):
        message = messages[index]
        if message.role is not Role.ASSISTANT:
            if results_of(message):
                return False
            index += 1
            continue
        end = unit_end(messages, index, merged)
        unit = messages[index:end]
        if any(results_of(part_of) for part_of in unit):
            return False
        ids = [call.call_id for part_of in unit for call in calls_of(part_of)]
        if not ids:
            index = end
            continue
        if not seen.isdisjoint(ids) or "" in ids:
            return False
        if merged:
            seen.update(ids)
        if end == len(messages) and open_end:
            return len(set(ids)) == len(ids)
        behind = answers_end(messages, end, ids)
        if behind is None:
            return False
        index = behind
    return True


def _with_unique_ids(messages: Sequence[Message]) -> list[Message]:
    """The messages with a suffix on each call id that was used before, and on the answer to that call."""
    fresh: dict[tuple[int, int], str] = {}
    used: set[str] = set()
    for index, message in enumerate(messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolCall) and not part.server:
                stem = name = part.call_id or "call"
                number = 2
                while name in used:
                    name, number = f"{stem}-{number}", number + 1
                used.add(name)
                fresh[index, place] = name
    answered = {answer: fresh[call] for answer, call in matches(messages).items()}
    return [_renamed(message, index, fresh | answered) for index, message in enumerate(messages)]


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
    """One pass over messages whose call ids are unique, writing each call's answers right behind it."""

    def __init__(self, messages: list[Message], merged: bool, open_end: bool) -> None:
        self._messages = messages
        self._merged = merged
        self._open_end = open_end
        self._called = {c.call_id: at for at, m in enumerate(messages) for c in calls_of(m)}
        self._answers = self._chosen_answers()
        self._out: list[Message] = []

    def _chosen_answers(self) -> dict[str, tuple[int, ToolResult]]:
        """For each call its first answer behind it, else the first before it."""
        chosen: dict[str, tuple[int, ToolResult]] = {}
        for at, message in enumerate(self._messages):
            for result in results_of(message):
                call_at = self._called.get(result.call_id)
                if call_at is None:
                    continue
                held = chosen.get(result.call_id)
                if held is None or held[0] < call_at <= at:
                    chosen[result.call_id] = (at, result)
        return chosen

    def run(self) -> list[Message]:
        messages, index = self._messages, 0
        while index < len(messages):
            if messages[index].role is not Role.ASSISTANT:
                self._emit_rest(messages[index])
                index += 1
                continue
            end = unit_end(messages, index, self._merged)
            for message in messages[index:end]:
                self._emit_rest(message)
            index = self._emit_answers(index, end)
        return self._out

    def _emit_answers(self, start: int, end: int) -> int:
        """Writes the answers to the calls of messages `start` to `end`; returns where to go on."""
        ids = [call.call_id for message in self._messages[start:end] for call in calls_of(message)]
        if not ids or (end == len(self._messages) and self._open_end and not self._answers.keys() & set(ids)):
            return end
        behind = answers_end(self._messages, end, ids)
        if behind is not None:
            self._out += self._messages[end:behind]
            return behind
        by_message: dict[int, list[Part]] = defaultdict(list)
        for call_id in ids:
            if call_id in self._answers:
                at, result = self._answers[call_id]
                by_message[at].append(result)
        missing = [call_id for call_id in ids if call_id not in self._answers]
        alone = len(by_message) + len(missing) == 1
        for at, parts in by_message.items():
            message = self._messages[at]
            made = replace(message, role=Role.TOOL, parts=tuple(parts), patched=True)
            self._out.append(_with_parts(message, parts, Role.TOOL) if alone else made)
        caller = self._messages[end - 1]
        self._out += (_made_answer(caller, call_id) for call_id in missing)
        return end

    def _emit_rest(self, message: Message) -> None:
        """Writes what is no answer; an answer without a call becomes text."""
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
    if len(parts) == len(message.parts) and all(a is b for a, b in zip(parts, message.parts, strict=True)):
        return message
    return replace(message, role=role, parts=tuple(parts), patched=True)


def _made_answer(caller: Message, call_id: str) -> Message:
    """In the caller's format, so that its id is spelled as the call's."""
    result = ToolResult(call_id=call_id, text=NO_RESULT, patched=True)
    return Message(position=caller.position, role=Role.TOOL, parts=(result,), format=caller.format)
