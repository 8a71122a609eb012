"""The record of a compaction: figures about its effect and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import takewhile

from compaction.edits import Edit, Op
from compaction.messages import JSON, Message, Role
from compaction.planning.request import PlanRequest
from compaction.planning.verbatim import VerbatimException, verbatim_exceptions
from compaction.policy import Policy
from compaction.prefixes import common_length
from compaction.strategies import STRATEGIES
from compaction.view import View, in_force
from compaction.view.components import shown_memory

#: The step that a summarizer model can replace.
_RECAP = "recap"


class PlanState(StrEnum):
    """The outcome of a plan."""

    DONE = "done"
    NO_GAIN = "no_gain"  #: nothing would be shorter, so nothing was applied
    NOT_DUE = "not_due"  #: the prompt is below the trigger and no compaction was requested


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step: the number of its edits and the raw size of the prompt after it."""

    name: str
    edits: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The figures of one compaction. Token figures are raw estimates. In the provider's tokens, a prompt is
    `calibration` * estimate + `overhead`.

    `tokens_rebilled` are the remaining tokens after the first change, which must be written to the provider's
    cache. `tokens_new` of them would be written anyway, because no call has read them yet: the last
    answer and what follows it. `break_even_turns` is the number of calls until the savings exceed the
    additional cost:

        N = (w - r) / r * (rebilled - new) / saved

    with the policy's prices w for cache writes and r for cache reads, or None if nothing was saved.

    `summarizer_needed` is set if the prompt exceeded its budget after the free steps, so that messages had to
    be replaced with a recap. A recap can also be worthwhile for a prompt that fits; see `has_recap`.
    """

    state: PlanState
    trigger: str
    strategies: tuple[str, ...]
    steps: tuple[StepRecord, ...]
    budget: int
    target: int
    calibration: float
    overhead: int
    tokens_before: int
    tokens_after: int
    tokens_saved: int
    dropped: int  #: messages that were removed
    collapsed: int  #: parts that were shortened and not removed by a later step
    summarizer_needed: bool
    head_tokens: int
    middle_tokens: int
    tail_tokens: int
    tail_bound: str
    head_verbatim: bool
    tail_verbatim: bool
    exceptions: tuple[VerbatimException, ...]  #: changes to the head or tail, with their reasons
    tokens_rebilled: int
    tokens_new: int
    break_even_turns: float | None
    policy: str
    policy_version: int
    fits: bool
    reason: str
    memory_revision: int | None  #: the revision of the working memory in the compacted prompt
    duration_ms: float = field(compare=False)

    @property
    def has_recap(self) -> bool:
        """Whether the compaction replaced messages with a recap, with or without a model."""
        return _RECAP in self.strategies

    def to_json(self) -> dict[str, JSON]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The changes of a compaction. `goal` is its target size in raw tokens.

    `reason` explains why the prompt does not fit, or is "" if it does.
    """

    after: View
    edits: tuple[Edit, ...]
    steps: tuple[StepRecord, ...] = ()
    state: PlanState
    trigger: str
    goal: int
    reason: str = ""
    duration_ms: float = 0.0


def record_of(request: PlanRequest, change: Change) -> Record:
    """Return the record of a change to the view of `request`."""
    before, layout, policy = request.view, request.layout, request.policy
    after, edits = change.after, change.edits
    saved = before.tokens - after.tokens
    rebilled = _rebilled(before, after)
    new = min(rebilled, new_tokens(after.prompt_messages))
    head, tail = layout.head_end, len(before.entries) - layout.tail_start
    return Record(
        state=change.state,
        trigger=change.trigger,
        strategies=tuple(step.name for step in change.steps) if edits else (),
        steps=change.steps,
        budget=request.budget_tokens,
        target=change.goal,
        calibration=round(request.calibration.factor, 4),
        overhead=request.calibration.overhead,
        tokens_before=before.tokens,
        tokens_after=after.tokens,
        tokens_saved=saved,
        dropped=_dropped(before, after),
        collapsed=sum(edit.op is Op.REPLACE for edit in in_force(edits)),
        summarizer_needed=_needs_summarizer(request, change),
        head_tokens=layout.head_tokens,
        middle_tokens=layout.middle_tokens,
        tail_tokens=layout.tail_tokens,
        tail_bound=layout.bound,
        head_verbatim=_is_same(before, after, range(head)),
        tail_verbatim=_is_same(before, after, range(-tail, 0)),
        exceptions=verbatim_exceptions(before, edits, layout),
        tokens_rebilled=rebilled,
        tokens_new=new,
        break_even_turns=break_even_turns(policy, rebilled - new, saved),
        policy=policy.name,
        policy_version=policy.version,
        fits=after.tokens <= request.budget_tokens,
        reason=change.reason,
        memory_revision=request.memory_revision if edits and shown_memory(after.edits) else None,
        duration_ms=round(change.duration_ms, 3),
    )


def _needs_summarizer(request: PlanRequest, change: Change) -> bool:
    """Whether the prompt exceeded its budget after the free steps, and a recap was written."""
    if not change.edits or all(step.name != _RECAP for step in change.steps):
        return False
    earlier = takewhile(lambda step: step.name != _RECAP, change.steps)
    free = [step.tokens_after for step in earlier if STRATEGIES[step.name].is_free]
    return (free[-1] if free else request.view.tokens) > request.budget_tokens


def break_even_turns(policy: Policy, rebilled: int, saved: int) -> float | None:
    """Return the number of calls until the savings exceed the cost of re-caching, or None without savings."""
    if saved <= 0:
        return None
    price = (policy.cache_write_price - policy.cache_read_price) / policy.cache_read_price
    return round(max(0.0, price * rebilled / saved), 1)


def new_tokens(messages: Sequence[Message]) -> int:
    """Count the tokens of the last answer and of the messages after it, which no call has read yet."""
    newest = list(reversed(messages))
    following = list(takewhile(lambda message: message.role is not Role.ASSISTANT, newest))
    answer = takewhile(lambda message: message.role is Role.ASSISTANT, newest[len(following) :])
    return sum(message.tokens for message in (*following, *answer))


def _is_same(before: View, after: View, indices: range) -> bool:
    """Whether the messages are identical objects. Equality would not detect recreated messages."""
    old, new = before.messages, after.messages
    if len(indices) > min(len(old), len(new)):
        return False
    return all(old[i] is new[i] for i in indices)


def _dropped(before: View, after: View) -> int:
    """Count the pushed messages that are no longer shown."""
    kept = {entry.first for entry in after.entries if not entry.is_generated}
    return sum(not entry.is_generated and entry.first not in kept for entry in before.entries)


def _rebilled(before: View, after: View) -> int:
    """Count the tokens from the first difference on."""
    if before.components.tools != after.components.tools:
        return after.tokens  # providers read the tool definitions first
    shared = common_length(before.prompt_messages, after.prompt_messages)
    return sum(message.tokens for message in after.prompt_messages[shared:])
