"""The parameters with which the provider compacts the prompts of a session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compaction.capabilities import capabilities_of
from compaction.on_demand import OnDemand
from compaction.policy import Policy
from compaction.provider_engine import NAME, ProviderParams, is_compacted_by_provider, provider_params
from sessions.models import AgentSession, Compaction, Preamble
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from sessions.selectors.prompts.state import PromptState
from sessions.selectors.token_budgets import policy_of, session_budget
from sessions.store import bodies

#: Turns after a summary before the next one is requested, and after a request that failed.
_PAUSE_TURNS, _RETRY_TURNS = 3, 10


def session_provider_params(session: AgentSession) -> ProviderParams | None:
    """Return the parameters, or None if contextapp compacts the session."""
    policy = policy_of(session.policy, model=session.model)
    if not is_compacted_by_provider(policy, session.format):
        return None
    return provider_params(
        policy,
        format=session.format,
        budget=session_budget(session),
        capabilities=capabilities_of(session.model),
        tools=_tool_names(session, policy),
        memory=memory_notes(memory_latest(session_id=session.pk)).render(),
    )


def prompt_provider_params(state: PromptState, *, format: str) -> ProviderParams | None:
    """Return the parameters for a prompt in this dialect, or None if contextapp compacts the session.

    They contain `on_demand` only if a summary is due.
    """
    if state.format != format or not is_compacted_by_provider(policy_of(state.policy), format):
        return None
    session = AgentSession.objects.get(pk=state.id)
    params = session_provider_params(session)
    return replace(params, on_demand=on_demand_due(session, params)) if params is not None else None


def on_demand_due(session: AgentSession, params: ProviderParams | None) -> OnDemand | None:
    """Return how to request a summary if the prompt has reached the threshold, else None.

    A call that was in progress when the last summary arrived still reports the old size, and a request that
    failed is repeated only some turns later.
    """
    due = params.on_demand if params is not None else None
    if due is None or session.last_prompt_tokens < due.threshold:
        return None
    rows = session.compactions.filter(trigger=NAME, facts__on_demand=True).order_by("-number")
    last = rows.values_list("state", "turn_index").first()
    if last is None:
        return due
    pause = _PAUSE_TURNS if last[0] == Compaction.State.DONE else _RETRY_TURNS
    return due if session.turn_count > last[1] + pause else None


def _tool_names(session: AgentSession, policy: Policy) -> list[str]:
    """Return the names of the tools, which only matter if the policy has rules for single tools."""
    if not any(rule.exempt for rule in policy.tools):
        return []
    rows = Preamble.objects.filter(session=session, version=session.preamble_version)
    stored: Any = rows.values_list("tools", flat=True).first()
    definitions = bodies.json_value(stored) if stored is not None else []
    return [
        tool["name"] for tool in definitions if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    ]
