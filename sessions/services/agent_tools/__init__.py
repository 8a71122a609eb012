"""Tools that an agent gives to its model: restore removed content, search the history, keep notes.

A new tool is an `AgentTool` in its own module and one line in `TOOLS`.
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

TOOLS: dict[str, AgentTool] = {
    expand_clip.TOOL.name: expand_clip.TOOL,
    search_history.TOOL.name: search_history.TOOL,
    update_working_memory.TOOL.name: update_working_memory.TOOL,
}

#: The tools of the MCP server: also those that an agent's own program has other ways to do.
MCP_TOOLS: dict[str, AgentTool] = {
    **TOOLS,
    working_memory.TOOL.name: working_memory.TOOL,
    context_status.TOOL.name: context_status.TOOL,
    request_compaction.TOOL.name: request_compaction.TOOL,
}
