"""Tools that an agent gives to its model: restore removed content, search the history, keep notes.

A new tool is an `AgentTool` in its own module and one line in `TOOLS`.
"""

from __future__ import annotations

from sessions.services.agent_tools import expand_clip, search_history, update_working_memory
from sessions.services.agent_tools.base import AgentTool, ToolError

__all__ = ["TOOLS", "AgentTool", "ToolError"]

TOOLS: dict[str, AgentTool] = {
    expand_clip.TOOL.name: expand_clip.TOOL,
    search_history.TOOL.name: search_history.TOOL,
    update_working_memory.TOOL.name: update_working_memory.TOOL,
}
