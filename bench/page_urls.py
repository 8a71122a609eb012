"""The pages that `bench.pages` requests: every page of a project, and the most expensive variants."""

from __future__ import annotations

import random
from collections.abc import Callable

from django.urls import reverse

from accounts.models import Project
from sessions.models import AgentSession
from sessions.selectors.past_prompts.outline import MOST_IN_JSON

Address = Callable[[AgentSession], str]

#: The pages of a project that need no other argument.
_PROJECT_PAGES = (
    "lab", "memory", "connect", "imports", "replay", "replay_rates", "settings", "settings_members",
    "settings_keys", "settings_policy", "settings_webhooks", "settings_budgets", "settings_prices",
    "settings_memory", "settings_redaction", "settings_retention", "settings_audit",
)  # fmt: skip


def pages(project: Project, chance: random.Random) -> dict[str, Address]:
    """Return the address of each page for a session, with random turns and positions."""
    return {
        **_lists(project),
        **_sessions(project, chance),
        **{name.replace("_", ", "): _project(project, name) for name in _PROJECT_PAGES},
    }


def _project(project: Project, name: str, query: str = "") -> Address:
    address = reverse(name, args=[project.slug]) + (f"?{query}" if query else "")
    return lambda _: address


def _lists(project: Project) -> dict[str, Address]:
    return {
        "list": _project(project, "sessions"),
        "list, by cost": _project(project, "sessions", "sort=cost"),
        "list, filter expression": _project(
            project, "sessions", "q=peak%3A%3E20k+health%3AA%2CB+turns%3A%3E50"
        ),
        "list, words": _project(project, "sessions", "q=report"),
        "list, what moved": _project(project, "sessions_updated", "since=2020-01-01"),
        "list, suggestions": _project(project, "sessions_suggest", "q=tag:"),
        "palette": _project(project, "sessions_find", "q=review"),
        "search": _project(project, "search", "q=invoice+retry"),
        "tools, all": _project(project, "tools"),
        "trends": _project(project, "trends"),
        "trends, by tag": _project(project, "trends", "group=tag"),
        "trends, by session": _project(project, "trends", "group=session"),
        "trends, by member": _project(project, "trends", "group=member"),
        "trends, all time": _project(project, "trends", "first=2000-01-01&bucket=week"),
        "trends, series": _project(project, "trends_series"),
    }


def _sessions(project: Project, chance: random.Random) -> dict[str, Address]:
    def of(name: str, *more: Callable[[AgentSession], int], query: str = "") -> Address:
        def address(session: AgentSession) -> str:
            values = [value(session) for value in more]
            return reverse(name, args=[project.slug, session.pk, *values]) + (f"?{query}" if query else "")

        return address

    def turn(session: AgentSession) -> int:
        return chance.randrange(session.turn_count)

    def early_turn(session: AgentSession) -> int:
        """Return a turn whose prompt can be rendered as JSON."""
        return chance.randrange(min(session.turn_count, MOST_IN_JSON // 2))

    def compaction(session: AgentSession) -> int:
        return chance.randint(1, session.compaction_count)

    def compacted(name: str) -> Address:
        with_number, without = of(name, compaction), of("session_compactions")
        return lambda session: (with_number if session.compaction_count else without)(session)

    return {
        "session": of("session"),
        "session, turns in the middle": lambda s: f"{of('session')(s)}?turn={turn(s)}",
        "session, tool outputs": of("session", query="tool=grep"),
        "session, errors": of("session", query="errors=1"),
        "session, live": of("session_live", query="since=x"),
        "session, sub-agents": of("session_sub_agents"),
        "session, chart": of("session_chart"),
        "session, chart as a table": of("session_chart_table"),
        "session, search": lambda s: (
            f"{reverse('search', args=[project.slug])}?q=invoice+retry&session={s.pk}"
        ),
        "turn": of("session_turn", turn),
        "turn against another": lambda s: f"{of('session_turn_diff', turn)(s)}?turn={turn(s)}",
        "turn, prompt as JSON": of("session_past_prompt_json", early_turn),
        "turn, search": of("session_past_prompt", turn, query="q=the+report"),
        "prompt": of("session_prompt"),
        "compactions": of("session_compactions"),
        "compaction": compacted("session_compaction"),
        "compaction preview": of("session_compact_preview"),
        "compaction preview, plan": of("session_compact_preview", query="plan=1"),
        "tools": of("session_tools"),
        "memory": of("session_memory"),
        "replay": of("session_replay"),
        "raw": of("session_raw"),
        "share": of("session_share"),
    }
