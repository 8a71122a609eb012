"""What tools add to a context: each call and each output with its tokens, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compaction.messages import Message, ToolCall, ToolResult
from compaction.sizes.tokens import TokenCounter, part_tokens
from compaction.tools.actions import Kind, action_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A call, or an output if `is_output`, at a part of a message.

    `tool` is "" for an output without a known call. `path` and `span` are the file, and the part of it, that
    an output shows.
    """

    tool: str
    position: int
    part: int
    turn: int
    tokens: int
    is_output: bool
    is_error: bool = False
    path: str = ""
    span: str = ""


def tool_uses(
    messages: Iterable[Message], calls: dict[str, ToolCall], counter: TokenCounter
) -> Iterator[ToolUse]:
    """Yield the calls and outputs of the messages in order. Adds the calls to `calls`, by call id."""
    for message in messages:
        for index, part in enumerate(message.parts):
            if not isinstance(part, ToolCall | ToolResult):
                continue
            tokens = message.tokens if len(message.parts) == 1 else part_tokens(part, counter)
            if isinstance(part, ToolCall):
                calls[part.call_id] = part
                yield _use(message, index, part.name, tokens)
            else:
                yield _output(message, index, part, calls.get(part.call_id), tokens)


def _output(message: Message, index: int, part: ToolResult, call: ToolCall | None, tokens: int) -> ToolUse:
    action = action_of(call) if call is not None else None
    is_read = action is not None and action.kind is Kind.READ and not part.is_error
    return ToolUse(
        tool=call.name if call is not None else "",
        position=message.position,
        part=index,
        turn=message.turn,
        tokens=tokens,
        is_output=True,
        is_error=bool(part.is_error),
        path=action.path if is_read and action is not None else "",
        span=action.span if is_read and action is not None else "",
    )


def _use(message: Message, index: int, tool: str, tokens: int) -> ToolUse:
    return ToolUse(
        tool=tool, position=message.position, part=index, turn=message.turn, tokens=tokens, is_output=False
    )


def server_of(tool: str) -> str:
    """Return the MCP server of a tool named `mcp__server__tool`, or "" for the agent's own tools."""
    pieces = tool.split("__", 2)
    return pieces[1] if len(pieces) == 3 and pieces[0] == "mcp" else ""
