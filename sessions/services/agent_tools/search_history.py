"""Search the whole session or project, including messages that prompts no longer show."""

from __future__ import annotations

from sessions.models import AgentSession
from sessions.selectors.search.request import search_expression
from sessions.selectors.search.results import SearchHit, search
from sessions.selectors.search.visibility import Visibility
from sessions.services.agent_tools.base import AgentTool, Arguments, ToolError, text_argument, truncate

#: Number of messages in a result. Each has a snippet of some 60 tokens.
_HITS = 10

_SCOPES = ("session", "project")


def run(session: AgentSession, arguments: Arguments) -> str:
    """Return snippets of the messages that match the query best, in the session or in its project."""
    expression = search_expression(text_argument(arguments, "query"))
    scope = arguments.get("scope", _SCOPES[0])
    if scope not in _SCOPES:
        raise ToolError(f"`scope` must be one of: {', '.join(_SCOPES)}.")
    only = session.pk if scope == "session" else None
    page = search(expression.request(session.project_id, session_id=only), limit=_HITS)
    if not page.hits:
        return "nothing found"
    return truncate("\n\n".join(_hit_text(hit, session) for hit in page.hits))


def _hit_text(hit: SearchHit, session: AgentSession) -> str:
    """Return a snippet and its place. The handles of other sessions are left out: they cannot be expanded."""
    author = f"{hit.role} {hit.tool}".strip()
    place = f"turn {hit.turn}, {author}"
    if hit.session.pk != session.pk:
        named = f" ({hit.session.title[:60]})" if hit.session.title else ""
        return f"[session {hit.session.external_id}{named}, {hit.at:%Y-%m-%d}, {place}] {hit.snippet.text}"
    if hit.shown.visibility is not Visibility.SHOWN:
        place += f", {hit.shown.visibility}"
    if hit.handle:
        place += f", expand_clip {hit.handle}"
    return f"[{place}] {hit.snippet.text}"


TOOL = AgentTool(
    name="search_history",
    description=(
        "Search everything said and done in this session, including what is no longer shown. Ask a question "
        "or name files and identifiers; the best matches come first. Quote a phrase to require it. With "
        "scope `project`, all sessions of the project are searched."
    ),
    schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "a question, words or identifiers"},
            "scope": {
                "type": "string",
                "enum": list(_SCOPES),
                "description": "where to search; default: session",
            },
        },
        "required": ["query"],
    },
    run=run,
)
