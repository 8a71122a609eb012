"""The size of tool definitions, by MCP server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from accounts.models import Project
from compaction.adapters.tiktoken_counter import counter
from compaction.dialects.declarations import functions_of, is_gemini_tool
from compaction.tools.usage import server_of
from sessions.models import AgentSession, Preamble
from sessions.store import bodies

#: Agents of a project whose definitions are listed, and the newest sessions in which they are looked up.
_AGENTS, _SESSIONS = 5, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDefinitions:
    """The definitions of an MCP server, or of the agent's own tools if `server` is "".

    `unused` are the tools among them that the session has not called; None if the calls are not known.
    """

    server: str
    tools: int
    tokens: int
    unused: Sequence[str] | None = None


def session_definitions(*, session: AgentSession, called: Set[str]) -> list[ServerDefinitions]:
    """Return the definitions that the newest prompt contains, largest first. `called` are the tools used."""
    row = session.preambles.filter(version=session.preamble_version).only("tools").first()
    return _by_server(row, called) if row is not None else []


def project_definitions(*, project: Project) -> list[tuple[AgentSession, Sequence[ServerDefinitions]]]:
    """Return the definitions of each recently active agent, with the session that they are from."""
    newest = AgentSession.objects.filter(project=project, preamble_version__gt=0, parent=None)
    found: dict[str, AgentSession] = {}
    for session in newest.order_by("-last_active_at")[:_SESSIONS]:
        found.setdefault(session.agent, session)
    sessions = list(found.values())[:_AGENTS]
    rows = {
        row.session_id: row
        for row in Preamble.objects.filter(session__in=sessions, tools__isnull=False).order_by("version")
    }
    return [(session, _by_server(rows[session.pk], None)) for session in sessions if session.pk in rows]


def _by_server(row: Preamble, called: Set[str] | None) -> list[ServerDefinitions]:
    sizes = _sizes(row.tools) if row.tools is not None else {}
    servers: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name, tokens in sizes.items():
        servers[server_of(name)][name] = tokens
    found = [
        ServerDefinitions(
            server=server,
            tools=len(tools),
            tokens=sum(tools.values()),
            unused=None if called is None else sorted(tools.keys() - called),
        )
        for server, tools in servers.items()
    ]
    return sorted(found, key=lambda each: -each.tokens)


@lru_cache(64)
def _sizes(data: bytes) -> Mapping[str, int]:
    """Return the tokens of each tool's definition by its name.

    They add up to the tokens of the whole list in the prompt: its brackets and commas are divided among the
    definitions.
    """
    value = bodies.json_value(data)
    tools = [each for tool in value for each in _functions(tool)] if isinstance(value, list) else []
    count = counter().count
    sizes = (count(bodies.json_bytes(tool).decode()) for tool in tools)
    ends = list(accumulate(sizes, initial=0))
    total = count(data.decode())
    shares = pairwise(round(total * end / ends[-1]) for end in ends if tools)
    names = (_name(tool, at) for at, tool in enumerate(tools))
    return {name: end - start for name, (start, end) in zip(names, shares, strict=True)}


def _functions(tool: Any) -> list[Any]:
    """Return the functions that a tool of Gemini declares; any other definition alone."""
    return (functions_of(tool) if is_gemini_tool(tool) else None) or [tool]


def _name(tool: Any, at: int) -> str:
    if not isinstance(tool, dict):
        return f"tool {at}"
    function = tool.get("function")
    name = tool.get("name") or (function.get("name") if isinstance(function, dict) else None)
    return str(name or tool.get("type") or next(iter(tool), f"tool {at}"))
