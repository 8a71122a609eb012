"""Restore content that the prompt no longer shows in full."""

from __future__ import annotations

from redaction.patterns import BadPattern
from sessions.models import AgentSession
from sessions.selectors.compactions import contents
from sessions.services.agent_tools.base import (
    MAX_RESULT,
    AgentTool,
    Arguments,
    ToolError,
    number_argument,
    text_argument,
    truncate,
)
from sessions.store.blobs import ContentLost


def run(session: AgentSession, arguments: Arguments) -> str:
    """Return the content of a handle: all of it, a range of lines, or the lines that match a pattern."""
    handle = text_argument(arguments, "handle")
    try:
        content = contents.content_find(session=session, handle=handle)
    except ContentLost as error:
        raise ToolError(str(error)) from None
    if content is None:
        raise ToolError(f"this session has no content with the handle {handle!r}")
    if pattern := arguments.get("grep"):
        return _matching_lines(content.text, str(pattern))
    offset, limit = number_argument(arguments, "offset", 0), number_argument(arguments, "limit", 1_000_000)
    text, next_offset = contents.slice_lines(content.text, offset=offset, limit=max(1, limit))
    if len(text) > MAX_RESULT:
        return truncate(text)
    return text if next_offset is None else f"{text}\n[continues at offset {next_offset}]"


def _matching_lines(text: str, pattern: str) -> str:
    try:
        matches, count = contents.grep(text, pattern)
    except BadPattern as error:
        raise ToolError(f"grep: {error}") from None
    lines = "\n".join(f"{match['line']}: {match['text']}" for match in matches)
    return truncate(f"{count} matching line{'' if count == 1 else 's'}\n{lines}")


TOOL = AgentTool(
    name="expand_clip",
    description=(
        "Restore a tool output that is no longer shown in full. Pass the handle (h_…) from its placeholder. "
        "To read a part, pass offset and limit (lines), or grep (an RE2 pattern) for matching lines."
    ),
    schema={
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "the handle, for example h_abc"},
            "offset": {"type": "integer", "description": "first line, from 0"},
            "limit": {"type": "integer", "description": "number of lines"},
            "grep": {"type": "string", "description": "return only lines that match this pattern"},
        },
        "required": ["handle"],
    },
    run=run,
)
