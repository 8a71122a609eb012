"""The tools that an agent hands to its model: bring back what was taken out, search, keep notes.

A tool is a value in `TOOLS`: its definition as the model reads it, and what runs it. Results are text, and
so are errors: a model can act on both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compaction.dialects import get_dialect
from compaction.errors import WorkingMemoryError
from compaction.memory import Author, Via, WorkingMemory
from compaction.memory.operations import Op, Operation
from redaction.patterns import BadPattern
from sessions.models import AgentSession
from sessions.selectors import contents
from sessions.selectors.memory import memory_value
from sessions.services.memory.writing import (
    MemoryTooLarge,
    PersonsItem,
    Writer,
    memory_operate,
    memory_warning,
)

#: Characters of one answer: bringing a giant back whole would undo the compaction.
MAX_ANSWER = 20_000


class ToolError(Exception):
    """The call cannot be answered; the text is for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool:
    """One tool: `schema` is JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]
    run: Callable[[AgentSession, Mapping[str, Any]], str]

    def definition(self, format: str) -> dict[str, Any]:
        dialect = get_dialect(format)
        return dialect.tool_definition(name=self.name, description=self.description, schema=self.schema)


def _expand(session: AgentSession, arguments: Mapping[str, Any]) -> str:
    handle = _text(arguments, "handle")
    content = contents.content_find(session=session, handle=handle)
    if content is None:
        raise ToolError(f"there is no content {handle!r} in this session")
    if pattern := arguments.get("grep"):
        try:
            matches, count = contents.grep(content.text, str(pattern))
        except BadPattern as error:
            raise ToolError(f"grep: {error}") from None
        shown = "\n".join(f"{match['line']}: {match['text']}" for match in matches)
        return _bounded(f"{count} matching line{'' if count == 1 else 's'}\n{shown}")
    offset, limit = _number(arguments, "offset", 0), _number(arguments, "limit", 1_000_000)
    text, after = contents.slice_lines(content.text, offset=offset, limit=max(1, limit))
    if len(text) > MAX_ANSWER:
        return _bounded(text)
    return text if after is None else f"{text}\n[goes on at offset {after}]"


def _search(session: AgentSession, arguments: Mapping[str, Any]) -> str:
    terms = _text(arguments, "query").split()
    hits, _ = contents.search(session=session, terms=terms, before=None, limit=10)
    if not hits:
        return "nothing found"
    return _bounded("\n\n".join(f"[turn {hit.turn}, {hit.role}] {hit.snippet}" for hit in hits))


def _remember(session: AgentSession, arguments: Mapping[str, Any]) -> str:
    wanted = arguments.get("operations")
    if not isinstance(wanted, list) or not wanted:
        raise ToolError("`operations` must be a list of at least one")
    writer = Writer(author=Author.MODEL, via=Via.TOOL, reason=str(arguments.get("reason") or ""))
    try:
        operations = [Operation.from_json(data) for data in wanted]
        revision = memory_operate(session=session, operations=operations, writer=writer)
    except (MemoryTooLarge, PersonsItem, WorkingMemoryError) as error:
        raise ToolError(str(error)) from None
    told = f"working memory is at revision {revision.number if revision else 0}"
    warning = memory_warning(memory_value(revision), revision.tokens) if revision else None
    return f"{told}; {warning}" if warning else told


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"`{name}` must be a text")
    return value


def _number(arguments: Mapping[str, Any], name: str, default: int) -> int:
    value = arguments.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ToolError(f"`{name}` must be a whole number from 0")
    return value


def _bounded(text: str) -> str:
    if len(text) <= MAX_ANSWER:
        return text
    return f"{text[:MAX_ANSWER]}\n[{len(text) - MAX_ANSWER} characters more; use offset and limit, or grep]"


TOOLS: Mapping[str, AgentTool] = {
    tool.name: tool
    for tool in (
        AgentTool(
            name="expand_clip",
            description=(
                "Bring back a tool output that is not shown in full. Use the handle (h_…) that stands in its "
                "place. Ask for a piece by offset and limit (lines), or for matching lines by grep (RE2)."
            ),
            schema={
                "type": "object",
                "properties": {
                    "handle": {"type": "string", "description": "the handle, as h_abc"},
                    "offset": {"type": "integer", "description": "first line of the piece, from 0"},
                    "limit": {"type": "integer", "description": "lines of the piece"},
                    "grep": {"type": "string", "description": "only lines that match this pattern"},
                },
                "required": ["handle"],
            },
            run=_expand,
        ),
        AgentTool(
            name="search_history",
            description=(
                "Search everything said and done in this session, also what is no longer shown. "
                "Finds messages that contain all the words."
            ),
            schema={
                "type": "object",
                "properties": {"query": {"type": "string", "description": "words to find"}},
                "required": ["query"],
            },
            run=_search,
        ),
        AgentTool(
            name="update_working_memory",
            description=(
                "Keep notes that survive when old messages are no longer shown: the task, important files, "
                "decisions, open questions, the next step, blockers, what was tried and failed."
            ),
            schema={
                "type": "object",
                "properties": {
                    "operations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "op": {
                                    "enum": [op.value for op in Op],
                                    "description": "confirm: an item that is marked stale still holds",
                                },
                                "field": {
                                    "type": "string",
                                    "description": f"one of {', '.join(WorkingMemory().to_json())}, "
                                    "or a field of the project's own",
                                },
                                "item": {"type": "string", "description": "the item, word for word"},
                                "with": {"type": "string", "description": "for replace: the new item"},
                            },
                            "required": ["op", "field", "item"],
                        },
                    },
                    "reason": {"type": "string"},
                },
                "required": ["operations"],
            },
            run=_remember,
        ),
    )
}
