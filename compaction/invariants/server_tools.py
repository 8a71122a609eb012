"""Tools that the provider runs: call and result belong together (A4, R1).

Both are usually in the same assistant message. If the provider paused the response, or if its program calls
tools of the client, the result is in a later assistant message, with only answers and results between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from compaction.invariants.pairs import calls_of
from compaction.invariants.programs import PROGRAM, PROGRAM_OUTPUT, caller_of, ends_turn, hosted_id
from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON, Message, Opaque, Part, Role, ToolCall, ToolResult

#: The indices of a message and of its part.
_Place = tuple[int, int]


def violations(subject: Subject, *, rule: str) -> Iterator[Violation]:
    """Yield each server tool call without its result, each result without its call, and each call, or answer
    to it, without its program.
    """
    unpaired, orphaned = _unpaired(subject.messages)
    for position, place in sorted(unpaired | orphaned):
        part = subject.messages[position].parts[place]
        if (position, place) in orphaned:
            assert isinstance(part, ToolCall | ToolResult)
            text = f"tool call {part.call_id!r} names a caller that is not in this prompt"
        else:
            text = f"server tool call {hosted_id(part)!r} must have its call and its result in this turn"
        yield Violation(rule=rule, position=position, message=text)


def repair(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without unpaired server tool calls and results, and without missing callers."""
    unpaired, orphaned = _unpaired(messages)
    changed = {index for index, _ in unpaired | orphaned}
    return tuple(
        _repaired(message, index, unpaired, orphaned) if index in changed else message
        for index, message in enumerate(messages)
    )


def _repaired(message: Message, index: int, unpaired: set[_Place], orphaned: set[_Place]) -> Message:
    parts = tuple(
        _without_caller(part) if (index, place) in orphaned else part
        for place, part in enumerate(message.parts)
        if (index, place) not in unpaired
    )
    return replace(message, parts=parts, patched=True)


def _without_caller(part: Part) -> Part:
    assert isinstance(part, ToolCall | ToolResult)
    assert isinstance(part.source, Mapping)
    source: JSON = {name: value for name, value in part.source.items() if name != "caller"}
    return replace(part, source=source, patched=True)


def _unpaired(messages: Sequence[Message]) -> tuple[set[_Place], set[_Place]]:
    """Return the server tool calls and results without each other, and the calls and answers whose program is
    missing.

    A program at the end of the prompt has no result yet if it waits for the calls that it made. An answer
    without calls after them shows that the provider no longer runs it.
    """
    unpaired: set[_Place] = set()
    waiting: dict[str, _Place] = {}
    made: dict[_Place, _Place | None] = {}
    for index, message in enumerate(messages):
        if ends_turn(message):
            waiting.clear()
        for place, part in enumerate(message.parts):
            if _is_call(part):
                waiting[hosted_id(part)] = index, place
                unpaired.add((index, place))
            elif _is_result(part):
                call = waiting.pop(hosted_id(part), None)
                if call is None:
                    unpaired.add((index, place))
                else:
                    unpaired.discard(call)
            elif isinstance(part, ToolCall | ToolResult) and (caller := caller_of(part)):
                made[index, place] = waiting.get(caller)
    if not (messages and messages[-1].role is Role.ASSISTANT and not calls_of(messages[-1])):
        unpaired -= set(waiting.values()) & {program for program in made.values() if program is not None}
    return unpaired, {call for call, program in made.items() if program is None or program in unpaired}


def _is_call(part: Part) -> bool:
    return (isinstance(part, ToolCall) and part.server) or (isinstance(part, Opaque) and part.kind == PROGRAM)


def _is_result(part: Part) -> bool:
    is_output = isinstance(part, Opaque) and part.kind == PROGRAM_OUTPUT
    return is_output or (isinstance(part, ToolResult) and part.server)
