"""Tools that the provider runs and that call tools of the client, such as a program (A4, R1).

The client answers these calls before the provider returns the result of the program, so a program and its
result may be in different messages. Each call names the program that made it as its `caller`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compaction.messages import Message, Opaque, Part, Role, ToolCall, ToolResult

#: Items of the Responses API.
PROGRAM, PROGRAM_OUTPUT = "program", "program_output"


def caller_of(part: ToolCall | ToolResult) -> str:
    """Return the id of the program that made a call, or the call of a result; "" if the model made it."""
    caller = part.source.get("caller") if isinstance(part.source, Mapping) else None
    if not isinstance(caller, Mapping):
        return ""
    found = caller.get("tool_id") or caller.get("caller_id")
    return found if isinstance(found, str) else ""


def spans(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield the indices of the first and of each further message that belong to one call of the provider.

    Ids may repeat: Gemini's calls have none, so they are numbered within their message.
    """
    first: dict[str, int] = {}
    for index, message in enumerate(messages):
        for part in message.parts:
            found = hosted_id(part)
            if isinstance(part, ToolCall) and part.server:
                first[found] = index
            elif found and first.setdefault(found, index) != index:
                yield first[found], index
            if _is_result(part):
                first.pop(found, None)


def hosted_id(part: Part) -> str:
    """Return the id of the call of the provider that a part is, answers or was made by, or ""."""
    match part:
        case ToolCall(server=False):
            return caller_of(part)
        case ToolCall() | ToolResult(server=True):
            return part.call_id
        case Opaque(source=source) if isinstance(source, Mapping):
            found = source.get("call_id")
            return found if isinstance(found, str) else ""
    return ""


def ends_turn(message: Message) -> bool:
    """Return whether a message is neither an answer nor results of tools, which may follow a program."""
    return message.role is not Role.ASSISTANT and not all(isinstance(p, ToolResult) for p in message.parts)


def _is_result(part: Part) -> bool:
    return isinstance(part, ToolResult) or (isinstance(part, Opaque) and part.kind.endswith("_output"))


def open_start(messages: Sequence[Message]) -> int:
    """Return the start of the response with the first program that waits for the calls that it made.

    Returns the end if none waits. Only answers and results of tools may follow it.
    """
    started: dict[str, int] = {}
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        if ends_turn(message):
            started.clear()
        for part in message.parts:
            found = hosted_id(part)
            if isinstance(part, ToolCall) and not part.server:
                waiting |= {found} & started.keys()
            elif _is_result(part):
                started.pop(found, None)
            elif found:
                started[found] = index
    start = min((started[each] for each in waiting & started.keys()), default=len(messages))
    while 0 < start < len(messages) and messages[start - 1].role is Role.ASSISTANT:
        start -= 1
    return start
