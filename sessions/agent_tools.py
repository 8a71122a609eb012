"""The tools that an agent hands to its model: bring back what was taken out, search, keep notes.

A tool is a value in `TOOLS`: its definition as the model reads it, and what runs it. Results are text, and
so are errors: a model can act on both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sessions.models import AgentSession
from sessions.selectors import contents

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
        if format == "anthropic":
            return {"name": self.name, "description": self.description, "input_schema": self.schema}
        function = {"name": self.name, "description": self.description, "parameters": self.schema}
        return {"type": "function", "function": function}


def _expand(session: AgentSession, arguments: Mapping[str, Any]) -> str:
    handle = _text(arguments, "handle")
    content = contents.content_find(session=session, handle=handle)
    if content is None:
        raise ToolError(f"there is no content {handle!r} in this session")
    if pattern := arguments.get("grep"):
        try:
            matches, count = contents.grep(content.text, str(pattern))
        except contents.BadPattern as error:
            raise ToolError(f"grep: {error}") from None
        shown = "\n".join(f"{match['line']}: {match['text']}" for match in matches)
        return _bounded(f"{count} matching lines\n{shown}")
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
    return (
        f"{text[:MAX_ANSWER]}\n[{len(text) - MAX_ANSWER} more characters; ask with offset and limit, or grep]"
    )


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
    )
}
