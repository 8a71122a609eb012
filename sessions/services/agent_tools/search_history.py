"""Search the whole session, including messages that the prompt no longer shows."""

from __future__ import annotations

from sessions.models import AgentSession
from sessions.selectors.search.request import search_expression
from sessions.selectors.search.results import SearchHit, search
from sessions.selectors.search.visibility import Visibility
from sessions.services.agent_tools.base import AgentTool, Arguments, text_argument, truncate

#: Number of messages in a result. Each has a snippet of some 60 tokens.
_HITS = 10


def run(session: AgentSession, arguments: Arguments) -> str:
    """Return snippets of the messages that match the query best."""
    expression = search_expression(text_argument(arguments, "query"))
    page = search(expression.request(session.project_id, session_id=session.pk), limit=_HITS)
    if not page.hits:
        return "nothing found"
    return truncate("\n\n".join(map(_hit_text, page.hits)))


def _hit_text(hit: SearchHit) -> str:
    author = f"{hit.role} {hit.tool}".strip()
    place = f"turn {hit.turn}, {author}"
    if hit.shown.visibility is not Visibility.SHOWN:
        place += f", {hit.shown.visibility}"
    if hit.shown.handle:
        place += f", expand_clip {hit.shown.handle}"
    return f"[{place}] {hit.snippet.text}"


TOOL = AgentTool(
    name="search_history",
    description=(
        "Search everything said and done in this session, including what is no longer shown. Ask a question "
        "or name files and identifiers; the best matches come first. Quote a phrase to require it."
    ),
    schema={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "a question, words or identifiers"}},
        "required": ["query"],
    },
    run=run,
)
