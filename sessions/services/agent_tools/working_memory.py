"""Read the session's working memory."""

from __future__ import annotations

from sessions.models import AgentSession
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from sessions.services.agent_tools.base import AgentTool, Arguments


def run(session: AgentSession, _arguments: Arguments) -> str:
    """Return the latest revision as text."""
    latest = memory_latest(session_id=session.pk)
    text = memory_notes(latest).render()
    if latest is None or not text:
        return "The working memory is empty."
    return f"Revision {latest.number}\n\n{text}"


TOOL = AgentTool(
    name="working_memory",
    description="Read the session's notes: task, important files, decisions, open questions, next step.",
    schema={"type": "object", "properties": {}},
    run=run,
)
