"""The parameters with which the provider compacts the prompts of a session."""

from __future__ import annotations

from typing import Any

from compaction.capabilities import capabilities_of
from compaction.policy import Policy
from compaction.provider_engine import ProviderParams, is_compacted_by_provider, provider_params
from sessions.models import AgentSession, Preamble
from sessions.selectors.memory import memory_latest, memory_notes
from sessions.selectors.prompts import PromptState
from sessions.selectors.token_budgets import budget_tokens, policy_of
from sessions.store import bodies


def session_provider_params(session: AgentSession) -> ProviderParams | None:
    """Return the parameters, or None if contextapp compacts the session."""
    policy = policy_of(session.policy)
    if not is_compacted_by_provider(policy, session.format):
        return None
    budget = budget_tokens(
        own=session.budget_tokens, context_window=session.context_window, model=session.model
    )
    return provider_params(
        policy,
        format=session.format,
        budget=budget,
        capabilities=capabilities_of(session.model),
        tools=_tool_names(session, policy),
        memory=memory_notes(memory_latest(session_id=session.pk)).render(),
    )


def prompt_provider_params(state: PromptState, *, format: str) -> ProviderParams | None:
    """Return the parameters for a prompt in this dialect, or None if contextapp compacts the session."""
    if state.format != format or not is_compacted_by_provider(policy_of(state.policy), format):
        return None
    return session_provider_params(AgentSession.objects.get(pk=state.id))


def _tool_names(session: AgentSession, policy: Policy) -> list[str]:
    """Return the names of the tools, which only matter if the policy has rules for single tools."""
    if not any(rule.exempt for rule in policy.tools):
        return []
    rows = Preamble.objects.filter(session=session, version=session.preamble_version)
    stored = rows.values_list("tools", flat=True).first()
    definitions: Any = bodies.json_value(bodies.unpack(stored)) if stored is not None else []
    return [
        tool["name"] for tool in definitions if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    ]
