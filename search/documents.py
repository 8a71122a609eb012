"""Convert messages to indexed documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from compaction.identifiers.extract import Kind, argument_text, kind_of, references
from compaction.messages import Message, Opaque, Text, Thinking, ToolCall, ToolResult
from search.scoring import length_code
from search.segments import Document
from search.terms import analyze, fold

#: The role of messages that consist of tool results, in any dialect.
TOOL = "tool"


def message_text(message: Message) -> str:
    """Return the searchable text of a message: texts, thinking, tool results and tool calls."""
    return message_text_and_starts(message)[0]


def message_text_and_starts(message: Message) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the text of a message, where the text of each part begins in it, and the index of the part."""
    pieces, starts, start = [], [], 0
    for index, text in _part_texts(message):
        pieces.append(text)
        starts.append((start, index))
        start += len(text) + 1
    return "\n".join(pieces), tuple(starts)


def _part_texts(message: Message) -> Iterator[tuple[int, str]]:
    for index, part in enumerate(message.parts):
        match part:
            case Text(text=text) | Thinking(text=text) | ToolResult(text=text):
                yield index, text
            case ToolCall(name=name, arguments=arguments):
                yield index, f"{name}\n{argument_text(arguments)}"
            case Opaque():
                pass


def message_role(message: Message) -> str:
    """Return the role of a message; `tool` if it consists of tool results."""
    parts = [part for part in message.parts if not isinstance(part, Opaque)]
    is_output = bool(parts) and all(isinstance(part, ToolResult) for part in parts)
    return TOOL if is_output else str(message.role)


def message_tool(message: Message, names: Mapping[str, str]) -> str:
    """Return the tool of a message's first call or result. `names` maps ids of calls to tools."""
    for part in message.parts:
        if isinstance(part, ToolCall):
            return part.name
        if isinstance(part, ToolResult):
            return names.get(part.call_id, "")
    return ""


def document_of(message: Message, names: Mapping[str, str], *, is_error: bool) -> Document:
    """Return the indexed form of a message."""
    analysis = analyze(message_text(message))
    return Document(
        role=message_role(message),
        tool=message_tool(message, names),
        is_error=is_error,
        length=length_code(analysis.length),
        counts=analysis.counts,
    )


def touched_files(message: Message) -> Counter[str]:
    """Count the files in the arguments of a message's tool calls, with folded names."""
    found: Counter[str] = Counter()
    for call in message.tool_calls:
        for name in references(argument_text(call.arguments)):
            if kind_of(name) is Kind.PATH and "." in name.rpartition("/")[2]:
                found[fold(name)] += 1
    return found
