"""The tools of the MCP server, and the session that a call concerns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.models import Scope
from compaction.adapters.tiktoken_counter import counter
from sessions.api.auth import Principal
from sessions.api.mcp.protocol import INVALID_PARAMS, RpcError
from sessions.models import AgentSession
from sessions.selectors.lookups import session_find, session_newest
from sessions.services.agent_tools import MCP_TOOLS, AgentTool, ToolError

#: Maximum tokens of a result: Claude Code warns above 10,000.
MAX_TOKENS = 9_500

_SESSION = {
    "type": "string",
    "description": "Id of the session. Defaults to the most recently active one.",
}


def definitions(*, with_session: bool) -> list[dict[str, Any]]:
    """Return the definitions of all tools. `with_session` adds the argument that names the session."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": _schema(tool.schema, with_session),
            "annotations": _annotations(tool),
        }
        for tool in MCP_TOOLS.values()
    ]


def _annotations(tool: AgentTool) -> dict[str, bool]:
    """Return the hints by which clients decide whether to ask the user before a call.

    Without a hint, clients assume that a tool that writes may destroy data. None does: evicted messages and
    the earlier revisions of the working memory remain stored.
    """
    return {"readOnlyHint": not tool.writes, "destructiveHint": False, "openWorldHint": False}


def _schema(schema: Mapping[str, Any], with_session: bool) -> Mapping[str, Any]:
    if not with_session:
        return schema
    return {**schema, "properties": {**schema.get("properties", {}), "session": _SESSION}}


def call(
    principal: Principal, session_id: str | None, name: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Run a tool and return the `tools/call` result. Errors that the model can fix are part of the result.

    `session_id` is the session of the URL; otherwise the argument `session` names it. Raises `RpcError` if
    there is no such tool.
    """
    tool = MCP_TOOLS.get(name)
    if tool is None:
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")
    if tool.writes and Scope.PUSH not in principal.scopes:
        return _content("The API key lacks the scope `push`.", is_error=True)
    try:
        session = _session(principal, session_id or arguments.get("session"))
        own = {key: value for key, value in arguments.items() if key != "session"}
        return _content(_clipped(tool.run(session, own)))
    except ToolError as error:
        return _content(str(error), is_error=True)


def _session(principal: Principal, name: Any) -> AgentSession:
    """Return a session by its ID, or the newest one. Raises `ToolError`."""
    if name is None:
        session = session_newest(project_id=principal.project_id, created_by_id=principal.user_id)
        if session is None:
            raise ToolError("This project has no sessions yet.")
        return session
    found = session_find(project_id=principal.project_id, name=name) if isinstance(name, str) else None
    if found is None:
        raise ToolError(f"No session with the id {name!r} in this project.")
    return found


def _clipped(text: str) -> str:
    """Return at most `MAX_TOKENS` tokens of a result."""
    count, short = counter().count, text
    while (tokens := count(short)) > MAX_TOKENS:
        short = short[: len(short) * MAX_TOKENS // tokens - 1]
    if short is text:
        return text
    return f"{short}\n[{len(text) - len(short):,} more characters; narrow the request]"


def _content(text: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}
