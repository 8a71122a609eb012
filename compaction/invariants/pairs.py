"""Tool calls and their answers (A1, A2, A3, A6; C1, C2).

A call and its answer live and die together, parallel calls included: a cut is safe where no call before
it is answered behind it. Anthropic merges consecutive messages of one role before it looks (A6), so the
calls of neighbouring assistant messages are answered together there; OpenAI wants the answers right
behind each message.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from compaction.invariants.violations import Subject, Violation
from compaction.messages import Message, Role, ToolCall, ToolResult


def calls_of(message: Message) -> list[ToolCall]:
    """The calls that the client runs; a server's own tools are answered in the same message (A4)."""
    return [call for call in message.tool_calls if not call.server]


def results_of(message: Message) -> list[ToolResult]:
    return [result for result in message.tool_results if not result.server]


def _answers(message: Message) -> bool:
    return any(isinstance(part, ToolResult) and not part.server for part in message.parts)


def matches(messages: Sequence[Message]) -> dict[tuple[int, int], tuple[int, int]]:
    """For each answer (message index, part index) the call that it answers.

    Ids may repeat, as some models count them anew in each turn: an answer belongs to the newest call of
    its id that is still open, else to the first one that comes later and gets no other.
    """
    found: dict[tuple[int, int], tuple[int, int]] = {}
    waiting: dict[str, list[tuple[int, int]]] = defaultdict(list)
    early: list[tuple[str, tuple[int, int]]] = []
    for index, message in enumerate(messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolCall) and not part.server:
                waiting[part.call_id].append((index, place))
            elif isinstance(part, ToolResult) and not part.server:
                if waiting.get(part.call_id):
                    found[index, place] = waiting[part.call_id].pop()
                else:
                    early.append((part.call_id, (index, place)))
    for call_id, answer in early:
        later = next((call for call in waiting.get(call_id, ()) if call > answer), None)
        if later is not None:
            waiting[call_id].remove(later)
            found[answer] = later
    return found


def safe_cuts(messages: Sequence[Message]) -> set[int]:
    """Indices at which the messages may be cut: no call in front of it is answered behind it."""
    reach = [index + 1 for index in range(len(messages))]
    for (answer, _), (call, _) in matches(messages).items():
        first, last = min(answer, call), max(answer, call)
        reach[first] = max(reach[first], last + 1)
    cuts, bound = {len(messages)}, 0
    for index, message in enumerate(messages):
        if index >= bound and not _answers(message):
            cuts.add(index)
        bound = max(bound, reach[index])
    return cuts


def violations(subject: Subject) -> Iterator[Violation]:
    """Broken pair rules, in the order of the messages."""
    messages, merged = subject.messages, subject.anthropic
    seen: set[str] = set()
    index = 0
    while index < len(messages):
        if messages[index].role is not Role.ASSISTANT:
            yield from _strays(messages, index, index + 1, (), merged)
            index += 1
            continue
        end = unit_end(messages, index, merged)
        calls = [(at, call.call_id) for at in range(index, end) for call in calls_of(messages[at])]
        yield from _strays(messages, index, end, (), merged)
        for at, call_id in calls:
            if call_id in seen:
                yield Violation(rule="A3", position=at, message=f"tool call id {call_id!r} is used twice")
        seen.update(call_id for _, call_id in calls if merged)
        if end == len(messages) and subject.capabilities.prefill:
            return
        index = answers_end(messages, end, [call_id for _, call_id in calls]) or end
        if calls and index == end:
            index = _behind(messages, end, merged)
            yield from _unanswered(messages, end, index, calls, merged)
            yield from _strays(messages, end, index, [call_id for _, call_id in calls], merged)


def unit_end(messages: Sequence[Message], start: int, merged: bool) -> int:
    """End of the messages whose calls are answered together: assistant messages in a row, or one message."""
    end = start + 1
    if merged and messages[start].role is Role.ASSISTANT:
        while end < len(messages) and messages[end].role is Role.ASSISTANT:
            end += 1
    return end


def _behind(messages: Sequence[Message], start: int, merged: bool) -> int:
    """End of the messages in which the answers have to stand."""
    end = start
    while end < len(messages) and messages[end].role not in (Role.ASSISTANT, Role.SYSTEM):
        if not merged and not results_of(messages[end]):
            break
        end += 1
    return end


def answers_end(messages: Sequence[Message], start: int, call_ids: Sequence[str]) -> int | None:
    """End of the messages from `start` that answer the calls: each once, before anything else; else None."""
    waiting = set(call_ids)
    if len(waiting) < len(call_ids):
        return None
    index = start
    while waiting:
        if index == len(messages) or messages[index].role in (Role.ASSISTANT, Role.SYSTEM):
            return None
        others = False
        for part in messages[index].parts:
            if not isinstance(part, ToolResult) or part.server:
                others = True
            elif others or part.call_id not in waiting:
                return None
            else:
                waiting.remove(part.call_id)
        if others and waiting:
            return None
        index += 1
    return index


def _unanswered(
    messages: Sequence[Message], start: int, end: int, calls: list[tuple[int, str]], merged: bool
) -> Iterator[Violation]:
    """Why the messages `start` to `end` do not answer the calls."""
    there = Counter(result.call_id for message in messages[start:end] for result in results_of(message))
    missing = [(at, call_id) for at, call_id in calls if not there[call_id]]
    for at, call_id in missing:
        rule = "A1" if merged else "C1"
        yield Violation(rule=rule, position=at, message=f"tool call {call_id!r} is not answered next")
    if not missing and len(there) == there.total() == len(calls):
        rule = "A2" if merged else "C1"
        yield Violation(rule=rule, position=start, message="tool results do not stand first")


def _strays(
    messages: Sequence[Message], start: int, end: int, wanted: Sequence[str], merged: bool
) -> Iterator[Violation]:
    """Results that answer no call there, or one that has its answer."""
    found: set[str] = set()
    for at in range(start, end):
        for result in results_of(messages[at]):
            name = result.call_id
            if name not in wanted:
                rule = "A1" if merged else "C2"
                yield Violation(rule=rule, position=at, message=f"tool result {name!r} has no call before it")
            elif name in found:
                rule = "A3" if merged else "C2"
                yield Violation(rule=rule, position=at, message=f"tool call {name!r} is answered twice")
            found.add(name)
