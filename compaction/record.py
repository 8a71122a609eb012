"""The record of a compaction: every figure that explains what was done, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from compaction.edits import Edit, Op
from compaction.layout import Layout
from compaction.messages import JSON
from compaction.policy import Policy
from compaction.view import View


class State(StrEnum):
    """How a plan ended."""

    DONE = "done"
    NO_GAIN = "no_gain"  #: nothing became shorter, so nothing was applied
    NOT_DUE = "not_due"  #: the prompt is below the trigger and nobody asked


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """What one step did: its edits, and the raw size of the prompt behind it."""

    name: str
    edits: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Figures of one compaction. Token figures are raw estimates; times `calibration` they are real ones.

    `tokens_rebilled` are the kept tokens behind the first change, which the provider's cache has to be
    given anew. `break_even_turns` is after how many turns the saving has paid for that, by

        N = (w - r) / r * rebilled / saved

    with the policy's prices w for a cache write and r for a read; None where nothing was saved.
    """

    state: State
    trigger: str
    strategies: tuple[str, ...]
    steps: tuple[StepRecord, ...]
    budget: int
    target: int
    calibration: float
    tokens_before: int
    tokens_after: int
    tokens_saved: int
    dropped: int  #: messages that went
    collapsed: int  #: parts that became shorter
    summarizer_needed: bool
    head_tokens: int
    middle_tokens: int
    tail_tokens: int
    tail_bound: str
    head_verbatim: bool
    tail_verbatim: bool
    tokens_rebilled: int
    break_even_turns: float | None
    policy: str
    policy_version: int
    fits: bool
    reason: str
    duration_ms: float = field(compare=False)

    def to_json(self) -> dict[str, JSON]:
        return asdict(self)


#: Steps that lose nothing which a handle would not bring back.
FREE_STEPS = frozenset({"dedupe", "supersede", "collapse", "clip", "recency", "clear_thinking"})


def record_of(
    *,
    before: View,
    after: View,
    edits: Sequence[Edit],
    layout: Layout,
    policy: Policy,
    budget: int,
    calibration: float,
    trigger: str,
    state: State,
    steps: tuple[StepRecord, ...],
    goal: int,
    reason: str,
    duration_ms: float,
) -> Record:
    """The record of the change from `before` to `after`."""
    saved = before.tokens - after.tokens
    rebilled = _rebilled(before, after) if edits else 0
    price = (policy.cache_write_price - policy.cache_read_price) / policy.cache_read_price
    free = [step.tokens_after for step in steps if step.name in FREE_STEPS]
    head, tail = layout.head_end, len(before.entries) - layout.tail_start
    return Record(
        state=state,
        trigger=trigger,
        strategies=tuple(step.name for step in steps) if edits else (),
        steps=steps,
        budget=budget,
        target=goal,
        calibration=calibration,
        tokens_before=before.tokens,
        tokens_after=after.tokens,
        tokens_saved=saved,
        dropped=_dropped(before, after),
        collapsed=sum(edit.op is Op.REPLACE for edit in edits),
        summarizer_needed=state is not State.NOT_DUE and (free[-1] if free else before.tokens) > goal,
        head_tokens=layout.head_tokens,
        middle_tokens=layout.middle_tokens,
        tail_tokens=layout.tail_tokens,
        tail_bound=layout.bound,
        head_verbatim=_same(before, after, range(head), range(head)),
        tail_verbatim=_same(before, after, range(-tail, 0), range(-tail, 0)),
        tokens_rebilled=rebilled,
        break_even_turns=round(max(0.0, price * rebilled / saved), 1) if saved > 0 else None,
        policy=policy.name,
        policy_version=policy.version,
        fits=after.tokens <= budget,
        reason=reason,
        duration_ms=round(duration_ms, 3),
    )


def _same(before: View, after: View, here: range, there: range) -> bool:
    """Whether the messages are the very same objects: equality would hide one that was made anew."""
    old, new = before.messages, after.messages
    if len(here) > min(len(old), len(new)):
        return False
    return all(old[i] is new[j] for i, j in zip(here, there, strict=True))


def _dropped(before: View, after: View) -> int:
    """Pushed messages that were shown before and are not any more."""
    kept = {entry.first for entry in after.entries if not entry.is_made}
    return sum(not entry.is_made and entry.first not in kept for entry in before.entries)


def _rebilled(before: View, after: View) -> int:
    """Tokens of the messages from the first one that is no longer the same object."""
    shared = 0
    for old, new in zip(before.messages, after.messages, strict=False):
        if old is not new:
            break
        shared += 1
    return sum(message.tokens for message in after.messages[shared:])
