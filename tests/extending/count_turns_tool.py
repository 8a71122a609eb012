"""An agent tool as a contributor would add it: one file."""

from __future__ import annotations

from sessions.models import AgentSession
from sessions.services.agent_tools.base import AgentTool, Arguments, ToolError, number_argument


def run(session: AgentSession, arguments: Arguments) -> str:
    """Return the number of turns from a given one on."""
    first = number_argument(arguments, "first", 0)
    if first > session.turn_count:
        raise ToolError(f"this session has no turn {first}")
    return f"{session.turn_count - first} turns"


TOOL = AgentTool(
    name="count_turns",
    description="Count the turns of this session.",
    schema={"type": "object", "properties": {"first": {"type": "integer"}}},
    run=run,
)
