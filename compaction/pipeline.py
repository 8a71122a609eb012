"""Planning a compaction: the steps in their order, each only if the cheaper ones did not reach the target.

    plan(view, policy, counter, budget=...) -> Plan

A plan is one batch of edits with its record. It never calls a model and never fails: where nothing fits,
it says why.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from compaction.capabilities import Capabilities
from compaction.context import Context, Evicted, MakeHandle, Summary, default_handle
from compaction.edits import Edit
from compaction.layout import split
from compaction.messages import Role
from compaction.policy import STEPS, Budget, Policy
from compaction.recap import Recap
from compaction.record import Record, State, StepRecord, record_of
from compaction.strategies import STRATEGIES
from compaction.tokens import TokenCounter
from compaction.view import View

_UNKNOWN_MODEL = Capabilities()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a compaction does. `view` is the view after `edits`, which are empty where nothing was gained.

    `recap` is the recap that stands in the view, for the next plan to fold; `evicted` what this plan's own
    extract stands for, None where it made none. `fits` says whether the prompt is within the budget,
    `reason` why not.
    """

    edits: tuple[Edit, ...]
    view: View
    record: Record
    recap: Recap | None = None
    evicted: Evicted | None = None

    @property
    def fits(self) -> bool:
        return self.record.fits

    @property
    def reason(self) -> str:
        return self.record.reason


def plan(
    view: View,
    policy: Policy,
    counter: TokenCounter,
    *,
    budget: Budget,
    trigger: str | None = None,
    calibration: float = 1.0,
    capabilities: Capabilities = _UNKNOWN_MODEL,
    make_handle: MakeHandle = default_handle,
    previous: Recap | None = None,
    summary: Summary | None = None,
    memory_text: str = "",
) -> Plan:
    """One batch of edits that brings the prompt to the policy's target.

    Without a `trigger` it acts only where the prompt is at or over `policy.hard`; a named trigger asks
    for a compaction whatever the size. `calibration` is real tokens per estimated token. `previous` is
    the recap that the view shows, `summary` a model's that is ready. `memory_text` stands with the recap.
    """
    started = time.perf_counter()
    raw_budget = max(1, int(budget.input_tokens / calibration))
    layout = split(
        view,
        budget_tokens=raw_budget,
        tail_share=policy.tail_share,
        tail_messages=policy.tail_messages,
    )
    context = Context(
        view,
        layout,
        policy,
        counter,
        budget=raw_budget,
        make_handle=make_handle,
        capabilities=capabilities,
        previous=previous,
        summary=summary,
        memory_text=memory_text,
    )
    return _planned(view, context, trigger=trigger, calibration=calibration, started=started)


def _planned(
    view: View, context: Context, *, trigger: str | None, calibration: float, started: float
) -> Plan:
    """What the steps make of the view, if a compaction is due. `started` is a time of `perf_counter`."""
    policy = context.policy
    if trigger is not None and view.tokens <= context.goal:
        context.goal = int(view.tokens * policy.target)  # somebody asked, so there is to be a difference
    due = trigger is not None or (policy.hard > 0 and view.tokens >= context.ceiling)
    after, edits, steps = _run(view, context) if due else (view, (), ())
    gained = after.tokens < view.tokens
    if not gained:
        after, edits = view, ()
    record = record_of(
        before=view,
        after=after,
        edits=edits,
        layout=context.layout,
        policy=policy,
        budget=context.budget,
        calibration=calibration,
        trigger=trigger or ("hard" if due else ""),
        state=State.DONE if gained else State.NO_GAIN if due else State.NOT_DUE,
        steps=steps,
        goal=context.goal,
        reason=_why_not(after, context),
        duration_ms=(time.perf_counter() - started) * 1000,
    )
    return Plan(
        edits=edits,
        view=after,
        record=record,
        recap=context.recap if gained and context.recap else context.previous,
        evicted=context.evicted if gained else None,
    )


def _run(view: View, context: Context) -> tuple[View, tuple[Edit, ...], tuple[StepRecord, ...]]:
    edits: tuple[Edit, ...] = ()
    steps: list[StepRecord] = []
    bound = context.capabilities.bound_thinking
    for name in STEPS:
        if name not in context.policy.steps or (bound and name == "clear_thinking"):
            continue
        if view.tokens <= context.goal:
            break
        shown, made = STRATEGIES[name].run(view, context)
        if made and shown.tokens < view.tokens:
            view, edits = shown, edits + made
            steps.append(StepRecord(name=name, edits=len(made), tokens_after=view.tokens))
    if edits and bound and "clear_thinking" in context.policy.steps:
        view, made = STRATEGIES["clear_thinking"].run(view, context)
        edits += made
    return view, edits, tuple(steps)


def _why_not(view: View, context: Context) -> str:
    """Why the prompt does not fit; "" where it does."""
    budget, policy = context.budget, context.policy
    if view.tokens <= budget:
        return ""
    told = f"{view.tokens} tokens, the budget is {budget}"
    beside = view.components.total
    if beside > budget:
        return f"{told}: system prompt, tools and memory alone take {beside}"
    if "last_resort" not in policy.steps:
        return f"{told}: policy {policy.name!r} has no step that could shorten it further"
    requests = [m for m in view.messages if m.role is Role.USER and not m.tool_results]
    if requests and requests[-1].tokens + context.layout.head_tokens + beside > budget:
        return f"{told}: the system prompt and the latest user message alone take more"
    return f"{told}: nothing is left that may be shortened"
