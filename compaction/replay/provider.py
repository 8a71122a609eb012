"""A model of compaction by the provider, to compare it with contextapp's in replays.

Modeled: at the thresholds that `provider_engine` computes, Anthropic replaces the outputs of all but the
newest tool uses with a placeholder, and both providers replace everything before the newest group of messages
with a summary. The summary is estimated by contextapp's deterministic recap, so its content and size are
approximations, and the call that writes it is not billed. Clearing of thinking is not modeled.
"""

from __future__ import annotations

from dataclasses import replace

from compaction.capabilities import Capabilities
from compaction.edits import Edit, Op
from compaction.messages import ToolResult
from compaction.planning.pipeline import Plan, plan_of_edits
from compaction.planning.request import PlanRequest
from compaction.provider_engine import CLEAR_TOOLS, NAME, provider_params
from compaction.recap import extract
from compaction.sizes.tokens import MESSAGE_OVERHEAD, PART_OVERHEAD

_PLACEHOLDER = "[Old tool result content cleared]"


def provider_plan(request: PlanRequest, *, format: str) -> Plan | None:
    """Return what the provider would do to the prompt of a request, or None if it would change nothing.

    The provider keeps thinking valid.
    """
    request = replace(request, capabilities=Capabilities())
    cleared = _cleared(request, format)
    if cleared is not None:
        return cleared
    policy = request.policy
    if "recap" in policy.steps and request.view.tokens > request.budget.input_tokens * (policy.hard or 1.0):
        return _summarized(request)
    return None


def _cleared(request: PlanRequest, format: str) -> Plan | None:
    view = request.view
    params = provider_params(
        request.policy,
        format=format,
        budget=request.budget.input_tokens,
        capabilities=Capabilities(bound_thinking=True),
    )
    if params is None or not isinstance(params.context_management, dict):
        return None
    edit = next(edit for edit in params.context_management["edits"] if edit["type"] == CLEAR_TOOLS)
    if view.tokens <= edit["trigger"]["value"]:
        return None
    edits = _clearings(request, keep=edit["keep"]["value"])
    if sum(each.tokens_before - each.tokens_after for each in edits) < edit["clear_at_least"]["value"]:
        return None
    return plan_of_edits(request, edits, recap=request.previous)


def _clearings(request: PlanRequest, *, keep: int) -> tuple[Edit, ...]:
    """Return an edit for each output that is not yet cleared, except those of the newest tool uses."""
    done = {(edit.position, edit.part) for edit in request.view.edits}
    names = {call.call_id: call.name for m in request.view.messages for call in m.tool_calls}
    after = PART_OVERHEAD + request.counter.count(_PLACEHOLDER)
    found = []
    for entry in request.view.entries:
        if entry.is_generated:
            continue
        for index, part in enumerate(entry.message.parts):
            if isinstance(part, ToolResult) and not part.server:
                found.append((entry, index, part))
    edits = []
    for entry, index, part in found[: max(0, len(found) - keep)]:
        if (entry.first, index) in done or request.policy.tool_rule(names.get(part.call_id, "")).exempt:
            continue
        before = PART_OVERHEAD + request.counter.count(part.text) + part.media_tokens
        if before > after:
            edits.append(
                Edit(
                    strategy=NAME,
                    op=Op.REPLACE,
                    position=entry.first,
                    end=entry.first,
                    part=index,
                    text=_PLACEHOLDER,
                    reason="cleared by the provider",
                    tokens_before=before,
                    tokens_after=after,
                )
            )
    return tuple(edits)


def _summarized(request: PlanRequest) -> Plan | None:
    """Return the plan that replaces everything before the last safe cut with a summary."""
    view = request.view
    cut = max((cut for cut in view.cuts if cut < len(view.entries)), default=0)
    removed = view.entries[:cut]
    if not removed:
        return None
    pushed = [view.pushed[entry.first] for entry in removed if not entry.is_generated]
    policy = request.policy
    recap = extract(
        pushed, counter=request.counter, cap_tokens=policy.recap_tokens_max, previous=request.previous
    )
    text = recap.render()
    edit = Edit(
        strategy=NAME,
        op=Op.EVICT,
        position=removed[0].first,
        end=removed[-1].last,
        text=text,
        reason="replaced by the provider's summary",
        tokens_before=sum(entry.message.tokens for entry in removed),
        tokens_after=MESSAGE_OVERHEAD + request.counter.count(text),
    )
    return plan_of_edits(request, (edit,), recap=recap)
