"""Compaction by the provider: the parameters of a request, computed from the policy.

With `engine: provider`, contextapp edits nothing. Anthropic clears tool outputs and thinking (beta
`context-management-2025-06-27`) and writes summaries (beta `compact-2026-01-12`, or on demand for models that
bind thinking to the prompt, see `compaction.on_demand`); OpenAI's Responses API compacts into an opaque item.
None of these invalidates thinking (rule A11). Chat Completions has no such parameters, so its sessions are
compacted by contextapp under either engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compaction.capabilities import Capabilities
from compaction.messages import JSON
from compaction.on_demand import BETA, OnDemand, summary_instructions
from compaction.policy import PROVIDER, Policy
from compaction.provider_summary import COMPACTION

#: Trigger of compactions that the provider reported, and strategy of their edits.
NAME = "provider"

_ANTHROPIC, _RESPONSES = "anthropic", "openai-responses"
_CLEARING_BETA, _COMPACTING_BETA = "context-management-2025-06-27", "compact-2026-01-12"
CLEAR_THINKING, CLEAR_TOOLS = "clear_thinking_20251015", "clear_tool_uses_20250919"
_COMPACT = "compact_20260112"

#: Smallest thresholds that the providers accept, in input tokens.
_MIN_COMPACT, _MIN_THRESHOLD = 50_000, 1_000

#: Turns within which the cost of rewriting the cache must be recovered by the removed tokens.
_PAYBACK_TURNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderParams:
    """The value of `context_management` in a request, and the beta headers that it needs.

    `on_demand` is set if a summary should be requested before the prompt reaches the provider's threshold.
    """

    context_management: JSON
    betas: tuple[str, ...] = ()
    on_demand: OnDemand | None = None

    def without_thinking(self) -> ProviderParams:
        """Return the parameters for a request without thinking, in which the provider clears none."""
        if not isinstance(self.context_management, Mapping):
            return self
        edits = [edit for edit in self.context_management["edits"] if edit["type"] != CLEAR_THINKING]
        return replace(self, context_management={"edits": edits})

    def following_block(self) -> ProviderParams:
        """Return the parameters for a request that begins with a summary written on demand.

        Anthropic rejects it together with a threshold for the other kind of summary.
        """
        if not isinstance(self.context_management, Mapping):
            return self
        betas = [beta for beta in self.betas if beta != _COMPACTING_BETA]
        value = without_threshold(self.context_management)
        return replace(self, context_management=value, betas=(*betas, BETA))

    def merged(self, given: JSON) -> JSON:
        """Return the value with the edits that a client has set itself, which take precedence."""
        if isinstance(given, list):
            return given or self.context_management
        if not isinstance(given, Mapping) or not isinstance(self.context_management, Mapping):
            return self.context_management
        own = [edit for edit in given.get("edits") or () if isinstance(edit, Mapping)]
        kinds = {edit.get("type") for edit in own}
        added = [edit for edit in self.context_management["edits"] if edit["type"] not in kinds]
        return {**given, "edits": sorted([*own, *added], key=lambda edit: edit.get("type") != CLEAR_THINKING)}


def without_threshold(value: JSON) -> JSON:
    """Return `context_management` without the edit that lets Anthropic summarize at a threshold."""
    if not isinstance(value, Mapping):
        return value
    edits = [edit for edit in value.get("edits") or () if not _is_threshold(edit)]
    return {**value, "edits": edits}


def has_threshold(value: JSON) -> bool:
    """Return whether Anthropic summarizes at a threshold."""
    return isinstance(value, Mapping) and any(map(_is_threshold, value.get("edits") or ()))


def _is_threshold(edit: JSON) -> bool:
    return isinstance(edit, Mapping) and edit.get("type") == _COMPACT


def is_compacted_by_provider(policy: Policy, format: str | None) -> bool:
    """Return whether the provider compacts the prompts of a session with this dialect."""
    return policy.engine == PROVIDER and format in (_ANTHROPIC, _RESPONSES)


def provider_params(
    policy: Policy,
    *,
    format: str | None,
    budget: int,
    capabilities: Capabilities,
    tools: Sequence[str] = (),
    memory: str = "",
) -> ProviderParams | None:
    """Return the parameters, or None if contextapp compacts the session.

    `budget` is in the provider's tokens. `tools` are the names of the defined tools, `memory` is the text of
    the working memory, which the summary must keep.
    """
    if not is_compacted_by_provider(policy, format):
        return None
    threshold = int(budget * (policy.hard or policy.soft or 1.0))
    if format == _RESPONSES:
        compaction = {"type": COMPACTION, "compact_threshold": max(_MIN_THRESHOLD, threshold)}
        return ProviderParams(context_management=[compaction])
    edits = _clearing(policy, budget, capabilities, tools)
    betas = [_CLEARING_BETA]
    on_demand = None
    if "recap" in policy.steps and capabilities.compaction:
        instructions = summary_instructions(memory, further=policy.summary_instructions)
        if capabilities.bound_thinking:
            early = first_threshold(policy, budget)
            on_demand = OnDemand(threshold=early, keep=policy.tail_share, instructions=instructions)
        if threshold >= _MIN_COMPACT:
            edits.append({"type": _COMPACT, "trigger": _tokens(threshold), "instructions": instructions})
            betas.append(_COMPACTING_BETA)
    return ProviderParams(context_management={"edits": edits}, betas=tuple(betas), on_demand=on_demand)


def first_threshold(policy: Policy, budget: int) -> int:
    """Return the size of the smallest prompt that the provider may change, in tokens of the budget."""
    return int(budget * (policy.soft or policy.hard or 1.0))


def _clearing(
    policy: Policy, budget: int, capabilities: Capabilities, tools: Sequence[str]
) -> list[dict[str, JSON]]:
    """Return the edits that clear thinking and tool outputs. Thinking must come first.

    Bound thinking is kept: the model needs it, and the provider keeps it valid.
    """
    kept = max(1, policy.tail_messages // 2)
    trigger = first_threshold(policy, budget)
    clear: dict[str, JSON] = {
        "type": CLEAR_TOOLS,
        "trigger": _tokens(trigger),
        "keep": {"type": "tool_uses", "value": kept},
        "clear_at_least": _tokens(clear_at_least(policy, trigger=trigger, budget=budget)),
    }
    if exempt := [name for name in tools if policy.tool_rule(name).exempt]:
        clear["exclude_tools"] = sorted(exempt)
    thinking = {"type": CLEAR_THINKING, "keep": {"type": "thinking_turns", "value": kept}}
    clears_thinking = "clear_thinking" in policy.steps and not capabilities.bound_thinking
    return [thinking, clear] if clears_thinking else [clear]


def clear_at_least(policy: Policy, *, trigger: int, budget: int) -> int:
    """Return the fewest tokens whose removal pays back the rewritten cache within some turns.

    Removing X of T tokens rewrites T - X tokens. It pays back after (w - r) / r * (T - X) / X turns.
    """
    price = (policy.cache_write_price - policy.cache_read_price) / policy.cache_read_price
    share = max(0.0, price) / (_PAYBACK_TURNS + max(0.0, price))
    return max(1, min(int(trigger * share), trigger - int(budget * policy.target)))


def _tokens(value: int) -> dict[str, JSON]:
    return {"type": "input_tokens", "value": max(1, value)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReport:
    """What a provider reports about the compaction of one request. Tokens are the provider's.

    `applied` are its edits of this request, each of which repeats those of earlier requests; `dropped` is the
    number of thinking blocks that it did not accept, and `calls` the usage of its calls for summaries.
    """

    applied: tuple[Mapping[str, JSON], ...] = ()
    dropped: int = 0
    calls: tuple[Mapping[str, JSON], ...] = ()

    @classmethod
    def of(cls, context_management: JSON, transformations: JSON, usage: JSON) -> ProviderReport | None:
        """Return the report in the fields of a response, or None if it reports nothing."""
        applied = tuple(_objects(context_management, "applied_edits"))
        found = transformations if isinstance(transformations, list) else []
        dropped = sum(isinstance(each, Mapping) and each.get("type") == "thinking_dropped" for each in found)
        calls = tuple(call for call in _objects(usage, "iterations") if call.get("type") == COMPACTION)
        report = cls(applied=applied, dropped=dropped, calls=calls)
        return report if applied or dropped or calls else None

    @property
    def cleared_tokens(self) -> int:
        return sum(_count(edit, "cleared_input_tokens") for edit in self.applied)

    @property
    def cleared_outputs(self) -> int:
        return sum(_count(edit, "cleared_tool_uses") for edit in self.applied)

    @property
    def cleared_thinking(self) -> int:
        return sum(_count(edit, "cleared_thinking_turns") for edit in self.applied)

    def to_json(self) -> dict[str, JSON]:
        return {
            "applied_edits": [dict(edit) for edit in self.applied],
            "thinking_dropped": self.dropped,
            "iterations": [dict(call) for call in self.calls],
        }


def _objects(value: JSON, name: str) -> list[Mapping[str, JSON]]:
    found = value.get(name) if isinstance(value, Mapping) else None
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _count(value: Mapping[str, JSON], name: str) -> int:
    found = value.get(name)
    return found if isinstance(found, int) and 0 <= found < 2**31 else 0
