"""Tools that an agent gives to its model: restore removed content, search the history, keep notes.

A new tool is an `AgentTool` in its own module and an entry in `TOOLS`.
"""

from __future__ import annotations

from sessions.services.agent_tools import (
    context_status,
    expand_clip,
    request_compaction,
    search_history,
    update_working_memory,
    working_memory,
)
from sessions.services.agent_tools.base import AgentTool, ToolError

__all__ = ["MCP_TOOLS", "TOOLS", "AgentTool", "ToolError"]

TOOLS = {each.TOOL.name: each.TOOL for each in (expand_clip, search_history, update_working_memory)}

#: The tools of the MCP server. The additional ones do what an agent's own program can do over the REST API.
MCP_TOOLS = TOOLS | {
    each.TOOL.name: each.TOOL for each in (working_memory, context_status, request_compaction)
}
