"""Plan a hard compaction before it is triggered.

When the prompt approaches the hard trigger, the next hard compaction is planned for the messages so far. The
last of them is the *plan boundary*. The messages that follow stay unchanged, as the newest part of the tail,
and the plan leaves room for them. The plan does not depend on these messages, so it can be computed before
they arrive, and it is the same if it is computed only when the trigger fires.

If the messages that follow exceed this room, the whole prompt is planned instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compaction.messages import Message, Role
from compaction.planning.record import PlanState, Record, break_even_turns, new_tokens
from compaction.planning.request import PlanRequest
from compaction.policy import Policy
from compaction.sizes.calibration import Calibration

#: The distance from the hard trigger at which the boundary is set, as a share of the budget.
LEAD = 0.10

#: Minimum number of messages that follow the boundary: a call and its results.
FOLLOWING = 2


def is_near_hard(*, tokens: int, budget: int, policy: Policy) -> bool:
    """Return whether a prompt of this size in provider tokens sets the boundary."""
    near = policy.hard - LEAD
    return policy.target < near and near * budget <= tokens < policy.hard * budget


def boundary_request(request: PlanRequest) -> PlanRequest:
    """Return the request for the messages up to the boundary, which leaves room for those that follow.

    The messages that follow take the tokens left until the hard trigger and, on average, half a turn more.
    The target and the tail are smaller by this amount.
    """
    policy, budget = request.policy, request.budget.input_tokens
    left = max(0.0, policy.hard - request.calibration.provider(request.view.tokens) / budget)
    following = left + policy.refire_delta
    return replace(
        request,
        policy=replace(
            policy,
            target=max(policy.target - following, policy.target / 2),
            tail_share=max(policy.tail_share - following, 0.0),
            tail_messages=max(policy.tail_messages - FOLLOWING, 1),
        ),
    )


def leaves_room(record: Record, *, tokens: int, messages: int, policy: Policy, room: int) -> bool:
    """Return whether a plan up to the boundary applies if this many tokens and messages follow it.

    `room` are the estimated tokens that fit into the budget.
    """
    return (
        record.state is PlanState.DONE
        and messages >= FOLLOWING
        and tokens <= policy.tail_share * room
        and record.tokens_after + tokens <= room
    )


def has_answer(messages: Sequence[Message]) -> bool:
    """Return whether any of the messages is an answer of the model."""
    return any(message.role is Role.ASSISTANT for message in messages)


def record_extended(
    record: Record,
    *,
    tokens: int,
    newest: Sequence[Message],
    policy: Policy,
    calibration: Calibration,
    room: int,
) -> Record:
    """Return the record of the whole prompt, with `tokens` of messages that follow the boundary.

    `newest` are these messages, or the last of them if they contain an answer. `policy`, `calibration` and
    `room` are those that apply when the trigger fires.
    """
    rebilled = record.tokens_rebilled + tokens
    new = new_tokens(newest) if has_answer(newest) else record.tokens_new + tokens
    return replace(
        record,
        steps=tuple(replace(step, tokens_after=step.tokens_after + tokens) for step in record.steps),
        budget=room,
        target=int(room * policy.target),
        calibration=round(calibration.factor, 4),
        overhead=calibration.overhead,
        tokens_before=record.tokens_before + tokens,
        tokens_after=record.tokens_after + tokens,
        tail_tokens=record.tail_tokens + tokens,
        tokens_rebilled=rebilled,
        tokens_new=new,
        break_even_turns=break_even_turns(policy, rebilled - new, record.tokens_saved),
        fits=True,
        reason="",
    )
