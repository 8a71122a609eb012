"""Plan a compaction: run the steps in order, each only if the cheaper ones did not reach the goal.

    plan(PlanRequest(view=view, policy=policy, counter=counter, budget=budget)) -> Plan

Free steps leave a handle for everything that they remove, so any gain is worthwhile. While the prompt fits
the budget, messages are evicted only if that saves a minimum share of the prompt, and at least the tokens of
the evicted descriptors.

A plan is one batch of edits with its record. Planning never calls a model and never fails: if the prompt
cannot fit, the record gives the reason.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.component_edits import restore_edits, shed_edit
from compaction.context import Context
from compaction.deadline import check_deadline
from compaction.edits import Edit, Op
from compaction.eviction import is_worthwhile
from compaction.messages import Role
from compaction.planning.memory_edits import memory_edits
from compaction.planning.record import Change, PlanState, Record, StepRecord, record_of
from compaction.planning.request import PlanRequest
from compaction.policy import Policy
from compaction.recap import Recap
from compaction.recap.spans import Evicted
from compaction.strategies import STRATEGIES, StepResult, clear_thinking
from compaction.view import View
from compaction.view.components import MEMORY

__all__ = ["Plan", "PlanRequest", "plan", "plan_of_edits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The result of planning: a batch of edits, the view after them, and the record.

    `edits` is empty if nothing was gained. `recap` is the recap that the view shows, for the next plan to
    include; `evicted` are the messages replaced by a recap that this plan extracted, or None.
    """

    edits: tuple[Edit, ...]
    view: View
    record: Record
    recap: Recap | None = None
    evicted: Evicted | None = None

    @property
    def fits(self) -> bool:
        """Whether the prompt is within the budget."""
        return self.record.fits

    @property
    def reason(self) -> str:
        """Why the prompt does not fit, or "" if it does."""
        return self.record.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """The steps so far, and their combined result."""

    total: StepResult
    steps: tuple[StepRecord, ...] = ()

    def applied(self, result: StepResult) -> _Progress:
        """Add the result of one more step."""
        total = StepResult(
            view=result.view,
            edits=self.total.edits + result.edits,
            recap=result.recap or self.total.recap,
            evicted=result.evicted or self.total.evicted,
        )
        return replace(self, total=total)

    def recorded(self, name: str, result: StepResult) -> _Progress:
        """Add the result of one more step and its record."""
        step = StepRecord(name=name, edits=len(result.edits), tokens_after=result.view.tokens)
        return replace(self.applied(result), steps=(*self.steps, step))

    def rejected(self, result: StepResult) -> _Progress:
        """Keep only the recap of a step without gain, for a later step that evicts the same messages."""
        return self.applied(replace(result, view=self.total.view, edits=()))


def plan(request: PlanRequest) -> Plan:
    """Return one batch of edits that reduces the prompt to the policy's target."""
    started = time.perf_counter()
    before, is_due = request.view, request.is_due
    # Restore components that were shed for lack of room, unless they still do not fit. The steps then also
    # make room for the current working memory.
    restored = StepResult.of(before, (*restore_edits(before), *memory_edits(request)) if is_due else ())
    context = (replace(request, view=restored.view) if restored.edits else request).context()
    progress = _Progress(total=restored)
    if is_due:
        progress = _run_steps(progress, context, request.policy)
    gained = _has_gained(progress.total.view, restored.view, before)
    total = progress.total if gained else StepResult(view=before)
    change = Change(
        after=total.view,
        edits=total.edits,
        steps=progress.steps,
        state=PlanState.DONE if gained else PlanState.NO_GAIN if is_due else PlanState.NOT_DUE,
        trigger=request.trigger or ("hard" if is_due else ""),
        goal=request.goal,
        reason=_reason_over_budget(total.view, request),
        duration_ms=(time.perf_counter() - started) * 1000,
    )
    record = record_of(request, change)
    return Plan(
        edits=total.edits,
        view=total.view,
        record=record,
        recap=(total.recap if _evicts(total) else None) or request.previous,
        evicted=total.evicted if record.has_recap else None,
    )


def _has_gained(after: View, restored: View, before: View) -> bool:
    """Return whether the steps shortened the prompt. Restored components may make it longer than before."""
    has_more = after.components.tools > before.components.tools or (
        after.components.memory > before.components.memory
    )
    return after.tokens < restored.tokens and (after.tokens < before.tokens or has_more)


def plan_of_edits(
    request: PlanRequest, edits: Sequence[Edit], *, recap: Recap | None, steps: tuple[StepRecord, ...] = ()
) -> Plan:
    """Return the plan that applies these edits, and removes the thinking that they invalidate."""
    view = request.view.with_edits(edits)
    if request.capabilities.bound_thinking:
        cleared = clear_thinking.edits_from(clear_thinking.first_change(edits), view, request.context())
        edits, view = (*edits, *cleared), request.view.with_edits((*edits, *cleared))
    change = Change(
        after=view,
        edits=tuple(edits),
        steps=steps,
        state=PlanState.DONE,
        trigger=request.trigger or "",
        goal=view.tokens,
    )
    return Plan(edits=change.edits, view=view, record=record_of(request, change), recap=recap)


def _run_steps(progress: _Progress, context: Context, policy: Policy) -> _Progress:
    """Run the policy's steps in order until the view reaches the goal."""
    # If edits invalidate the thinking after them, thinking is cleared once, after all other steps.
    clear_last = context.capabilities.bound_thinking
    declined = False
    for name, strategy in STRATEGIES.items():
        if name not in policy.steps or (clear_last and name == clear_thinking.NAME):
            continue
        check_deadline()
        view = progress.total.view
        if view.tokens <= context.goal:
            break
        result = strategy.run(view, context)
        declined |= result.is_declined
        if not result.edits or result.view.tokens >= view.tokens:
            progress = progress.rejected(result)
        elif view.tokens > context.budget_tokens or not _evicts(result):
            progress = progress.recorded(name, result)
        elif declined or not _is_worthwhile(view, result.view, context):
            declined = True  # a later step would keep even less of these messages
        else:
            progress = progress.recorded(name, result)
    if progress.total.edits and clear_last:
        cleared = clear_thinking.run(progress.total.view, context)
        if cleared.edits:
            progress = progress.recorded(clear_thinking.NAME, cleared)
    view = progress.total.view
    if view.tokens > context.budget_tokens:  # the policy may lack the steps that shed the memory
        progress = progress.applied(StepResult.of(view, shed_edit(MEMORY, MEMORY, view, context)))
    return progress


def _evicts(result: StepResult) -> bool:
    return any(edit.op is Op.EVICT for edit in result.edits)


def _is_worthwhile(before: View, after: View, context: Context) -> bool:
    kept = {entry.first for entry in after.entries if not entry.is_generated}
    return is_worthwhile(before, context, gain=before.tokens - after.tokens, kept=kept)


def _reason_over_budget(view: View, request: PlanRequest) -> str:
    """Return why the prompt does not fit, in the provider's tokens, or "" if it does."""
    room, calibration, policy = request.budget_tokens, request.calibration, request.policy
    if view.tokens <= room:
        return ""
    budget, other = request.budget.input_tokens, view.components.total
    size = f"{calibration.provider(view.tokens):,} tokens exceed the budget of {budget:,}"
    if calibration.overhead >= budget:
        return f"{size}: content that the agent sends but does not push alone takes {calibration.overhead:,}"
    if other > room:
        return f"{size}: the system prompt, tools and memory alone take {calibration.provider(other):,}"
    if "last_resort" not in policy.steps:
        return f"{size}: policy {policy.name!r} has no step that could shorten it further"
    requests = [m for m in view.messages if m.role is Role.USER and not m.tool_results]
    if requests and requests[-1].tokens + request.layout.head_tokens + other > room:
        return f"{size}: the system prompt and the latest user message alone take more"
    return f"{size}: no content is left that may be shortened"
