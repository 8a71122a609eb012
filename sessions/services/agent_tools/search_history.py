"""Search the whole session, including messages that the prompt no longer shows."""

from __future__ import annotations

from sessions.models import AgentSession
from sessions.selectors import contents
from sessions.services.agent_tools.base import AgentTool, Arguments, text_argument, truncate


def run(session: AgentSession, arguments: Arguments) -> str:
    """Return snippets of the newest messages that contain all words of the query."""
    terms = text_argument(arguments, "query").split()
    hits, _ = contents.search(session=session, terms=terms, before=None, limit=10)
    if not hits:
        return "nothing found"
    return truncate("\n\n".join(f"[turn {hit.turn}, {hit.role}] {hit.snippet}" for hit in hits))


TOOL = AgentTool(
    name="search_history",
    description=(
        "Search everything said and done in this session, including what is no longer shown. "
        "Finds messages that contain all the words."
    ),
    schema={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "words to find"}},
        "required": ["query"],
    },
    run=run,
)
