"""Tool calls and their results (A1, A2, A3, A6; C1, C2).

Calls and their results, including parallel calls, are kept or evicted together: a cut is safe if no call
before it has its result after it. Anthropic merges consecutive messages of one role before it validates (A6),
so the calls of consecutive assistant messages are answered together; OpenAI requires the results directly
after each message.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from compaction.invariants import programs
from compaction.invariants.violations import Subject, Violation
from compaction.messages import Message, Opaque, Role, Thinking, ToolCall, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """How a dialect arranges tool calls and results, and the rule that each kind of violation breaks."""

    merges_messages: bool  #: consecutive messages of one role count as one
    unique_ids: bool  #: a call id may occur only once in a prompt
    missing_rule: str  #: a call without a result
    order_rule: str  #: results that are not the first content after the call
    orphan_rule: str  #: a result without a call
    duplicate_rule: str  #: a repeated call id, or a second result of one call


def calls_of(message: Message) -> list[ToolCall]:
    """Return the calls that the client runs. Results of server tools are in the same message (A4)."""
    return [call for call in message.tool_calls if not call.server]


def results_of(message: Message) -> list[ToolResult]:
    """Return the results of calls that the client ran."""
    return [result for result in message.tool_results if not result.server]


def _has_results(message: Message) -> bool:
    for part in message.parts:  # noqa: SIM110 (twice as fast)
        if isinstance(part, ToolResult) and not part.server:
            return True
    return False


#: Maps the message and part index of each result to those of its call.
Pairs = Mapping[tuple[int, int], tuple[int, int]]


def matches(messages: Sequence[Message]) -> dict[tuple[int, int], tuple[int, int]]:
    """Map each result (message index, part index) to its call.

    Ids may repeat, because some models restart their numbering in each turn: a result belongs to the newest
    open call with its id, or else to the first later call with that id and without another result. Results of
    parallel calls with the same id are matched in order.
    """
    found: dict[tuple[int, int], tuple[int, int]] = {}
    waiting: dict[str, list[tuple[int, int]]] = defaultdict(list)
    parallel = _parallel_start(messages)
    early: list[tuple[str, tuple[int, int]]] = []
    for index, message in enumerate(messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolCall) and not part.server:
                waiting[part.call_id].append((index, place))
            elif isinstance(part, ToolResult) and not part.server:
                calls = waiting.get(part.call_id)
                if not calls:
                    early.append((part.call_id, (index, place)))
                elif len(calls) == 1:
                    found[index, place] = calls.pop()
                else:
                    newest = parallel[calls[-1][0]]
                    first = next(call for call in calls if parallel[call[0]] == newest)
                    calls.remove(first)
                    found[index, place] = first
    for call_id, result in early:
        later = next((call for call in waiting.get(call_id, ()) if call > result), None)
        if later is not None:
            waiting[call_id].remove(later)
            found[result] = later
    return found


def _parallel_start(messages: Sequence[Message]) -> list[int]:
    """Return for each message the index of the first assistant message in the run before it."""
    starts: list[int] = []
    for index, message in enumerate(messages):
        follows = index > 0 and message.role is messages[index - 1].role is Role.ASSISTANT
        starts.append(starts[-1] if follows else index)
    return starts


def _is_thinking(message: Message) -> bool:
    """Return whether a message is only thinking, whose response is in the messages after it (R2)."""
    return bool(message.parts) and all(isinstance(part, Thinking) for part in message.parts)


def _is_opaque(message: Message) -> bool:
    """Return whether a message is only an item that the core does not interpret, such as the output of a
    search for tools."""
    return bool(message.parts) and all(isinstance(part, Opaque) for part in message.parts)


def _response_end(messages: Sequence[Message], start: int) -> int:
    end = start + 1
    while end < len(messages) and messages[end].role is Role.ASSISTANT:
        end += 1
    return end


def safe_cuts(messages: Sequence[Message], pairs: Pairs | None = None) -> set[int]:
    """Return the indices at which the messages may be cut.

    A cut separates no call from its result, no program from its calls and its result, no thinking from the
    rest of its response, and no item of a tool that the provider runs from the item before it, which may be
    its call. `pairs` are the `matches` of the messages, if known.
    """
    reach = list(range(1, len(messages) + 1))
    pairs = matches(messages) if pairs is None else pairs
    calls = ((min(call, result), max(call, result)) for (result, _), (call, _) in pairs.items())
    for first, last in chain(calls, programs.spans(messages)):
        reach[first] = max(reach[first], last + 1)
    assistant = Role.ASSISTANT
    for index in range(len(messages) - 2, -1, -1):
        if messages[index + 1].role is assistant and messages[index].role is assistant:
            if _is_thinking(messages[index]):
                reach[index] = max(reach[index], _response_end(messages, index))
            elif _is_opaque(messages[index + 1]):
                reach[index] = max(reach[index], index + 2)
    cuts, bound = {len(messages)}, 0
    for index, message in enumerate(messages):
        if index >= bound and not _has_results(message):
            cuts.add(index)
        if reach[index] > bound:
            bound = reach[index]
    return cuts


def open_start(messages: Sequence[Message], pairs: Pairs) -> int:
    """Return the index of the newest response if one of its calls has no result yet, else the end.

    Only results may follow it. `pairs` are the `matches` of the messages.
    """
    end = len(messages)
    while end and messages[end - 1].role is not Role.ASSISTANT and messages[end - 1].tool_results:
        end -= 1
    start = end
    while start and messages[start - 1].role is Role.ASSISTANT:
        start -= 1
    calls = (
        (index, place)
        for index in range(start, end)
        for place, part in enumerate(messages[index].parts)
        if isinstance(part, ToolCall) and not part.server
    )
    return len(messages) if set(pairs.values()).issuperset(calls) else start


def violations(subject: Subject, pairing: Pairing) -> Iterator[Violation]:
    """Yield broken pair rules, in the order of the messages."""
    messages = subject.messages
    seen: set[str] = set()
    index = 0
    while index < len(messages):
        if messages[index].role is not Role.ASSISTANT:
            yield from _unexpected(messages, index, index + 1, (), pairing)
            index += 1
            continue
        end = unit_end(messages, index, pairing)
        calls = [(at, call.call_id) for at in range(index, end) for call in calls_of(messages[at])]
        yield from _unexpected(messages, index, end, (), pairing)
        used = set(seen)
        for at, call_id in calls:
            if call_id in used:
                yield _violation(pairing.duplicate_rule, at, f"tool call id {call_id!r} is used twice")
            used.add(call_id)
        seen = used if pairing.unique_ids else seen
        if end == len(messages) and subject.capabilities.prefill:
            return
        index = results_end(messages, end, [call_id for _, call_id in calls]) or end
        if calls and index == end:
            index = _latest_results_end(messages, end, pairing)
            yield from _unanswered(messages, end, index, calls, pairing)
            yield from _unexpected(messages, end, index, [call_id for _, call_id in calls], pairing)


def unit_end(messages: Sequence[Message], start: int, pairing: Pairing) -> int:
    """Return the end of the messages from `start` on whose calls are answered together."""
    end = start + 1
    if pairing.merges_messages and messages[start].role is Role.ASSISTANT:
        while end < len(messages) and messages[end].role is Role.ASSISTANT:
            end += 1
    return end


def _latest_results_end(messages: Sequence[Message], start: int, pairing: Pairing) -> int:
    """Return the end of the messages that may contain the results."""
    end = start
    while end < len(messages) and messages[end].role not in (Role.ASSISTANT, Role.SYSTEM):
        if not pairing.merges_messages and not results_of(messages[end]):
            break
        end += 1
    return end


def results_end(messages: Sequence[Message], start: int, call_ids: Sequence[str]) -> int | None:
    """Return the end of the messages from `start` on that answer the calls.

    Returns None unless each call is answered exactly once, before any other content.
    """
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


def begins_with_results(message: Message, open_calls: tuple[str, ...]) -> bool:
    """Return whether the message begins with one result per open call and has no others (A1, A2)."""
    first, rest = message.parts[: len(open_calls)], message.parts[len(open_calls) :]
    answered = [part.call_id for part in first if isinstance(part, ToolResult)]
    return sorted(answered) == sorted(open_calls) and not any(isinstance(part, ToolResult) for part in rest)


def _unanswered(
    messages: Sequence[Message], start: int, end: int, calls: list[tuple[int, str]], pairing: Pairing
) -> Iterator[Violation]:
    """Yield the reasons why the messages from `start` to `end` do not answer the calls."""
    found = Counter(result.call_id for message in messages[start:end] for result in results_of(message))
    missing = [(at, call_id) for at, call_id in calls if not found[call_id]]
    for at, call_id in missing:
        yield _violation(pairing.missing_rule, at, f"tool call {call_id!r} has no result directly after it")
    if not missing and len(found) == found.total() == len(calls):
        yield _violation(pairing.order_rule, start, "tool results must come before other content")


def _unexpected(
    messages: Sequence[Message], start: int, end: int, call_ids: Sequence[str], pairing: Pairing
) -> Iterator[Violation]:
    """Yield the results that belong to none of these calls, or to one that already has a result."""
    found: set[str] = set()
    for at in range(start, end):
        for result in results_of(messages[at]):
            call_id = result.call_id
            if call_id not in call_ids:
                yield _violation(pairing.orphan_rule, at, f"tool result {call_id!r} has no call before it")
            elif call_id in found:
                yield _violation(pairing.duplicate_rule, at, f"tool call {call_id!r} has two results")
            found.add(call_id)


def _violation(rule: str, position: int, message: str) -> Violation:
    return Violation(rule=rule, position=position, message=message)
