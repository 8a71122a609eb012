"""Hard compactions planned up to the plan boundary, before the trigger fires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from compaction.messages import Message
from compaction.planning.pipeline import PlanRequest, plan
from compaction.planning.preparation import (
    LEAD,
    boundary_request,
    is_near_hard,
    leaves_room,
    record_extended,
)
from compaction.planning.record import Record
from compaction.policy import Budget, Policy, get_policy
from compaction.sizes.calibration import Calibration
from compaction.view import apply
from tests.compaction.builders import COUNTER, parse, tool_loop

MESSAGES = parse(tool_loop(60, width=12))
POLICY = get_policy("balanced")


def whole_request(messages: tuple[Message, ...], budget: int, policy: Policy = POLICY) -> PlanRequest:
    view, limit = apply((), messages), Budget(input_tokens=budget)
    return PlanRequest(view=view, policy=policy, counter=COUNTER, budget=limit, trigger="hard")


def sizes(end: int) -> int:
    return sum(message.tokens for message in MESSAGES[:end])


def test_the_boundary_is_set_below_the_hard_trigger_only() -> None:
    def near(share: float, **changes: float) -> bool:
        return is_near_hard(tokens=int(1_000 * share), budget=1_000, policy=replace(POLICY, **changes))

    assert [near(share) for share in (0.84, 0.85, 0.94, 0.95)] == [False, True, True, False]
    assert not near(0.99, hard=0.0, soft=0.0)
    assert not any(near(share / 100, hard=1.0, target=1.0, soft=0.0) for share in range(101))


@pytest.mark.parametrize(
    ("occupancy", "target", "tail_share"),
    [(0.85, 0.25, 0.10), (0.95, 0.35, 0.20), (2.0, 0.35, 0.20), (0.5, 0.20, 0.0)],
)
def test_the_plan_is_smaller_by_what_may_follow(occupancy: float, target: float, tail_share: float) -> None:
    """By the tokens that are left until the hard trigger, and half a turn: 5% of the budget."""
    budget = round(sizes(len(MESSAGES)) / occupancy)
    policy = boundary_request(whole_request(MESSAGES, budget)).policy
    assert (policy.target, policy.tail_share) == pytest.approx((target, tail_share), abs=0.001)
    assert policy.tail_messages == POLICY.tail_messages - 2
    least = replace(POLICY, tail_messages=2)
    assert boundary_request(whole_request(MESSAGES, budget, least)).policy.tail_messages == 1


@pytest.mark.parametrize("following", [2, 4])
def test_the_plan_leaves_room_for_the_messages_that_follow(following: int) -> None:
    end = len(MESSAGES) - following
    budget = int(sizes(end) / (POLICY.hard - LEAD / 2))
    whole = whole_request(MESSAGES[:end], budget)
    request = boundary_request(whole)
    made, tokens = plan(request), sizes(len(MESSAGES)) - sizes(end)
    assert request.goal < whole.goal
    assert request.layout.tail_tokens <= whole.layout.tail_tokens
    assert leaves_room(made.record, tokens=tokens, messages=following, policy=POLICY, room=budget)

    def extended(newest: Sequence[Message]) -> Record:
        options = {"policy": POLICY, "calibration": Calibration(), "room": budget}
        return record_extended(made.record, tokens=tokens, newest=newest, **options)

    record = extended(MESSAGES[end:])
    # The record is that of the whole prompt.
    assert record.tokens_before == sizes(len(MESSAGES))
    assert record.tokens_after == made.view.tokens + tokens
    assert record.tokens_saved == record.tokens_before - record.tokens_after == made.record.tokens_saved
    assert record.target == whole.goal
    assert record.fits
    assert record.tail_tokens == made.record.tail_tokens + tokens
    assert record.tokens_rebilled == made.record.tokens_rebilled + tokens
    assert record.tokens_new == sum(message.tokens for message in MESSAGES[-2:])  # the last call, its result
    assert extended(MESSAGES[-1:]).tokens_new == made.record.tokens_new + tokens  # the plan has the answer
    # The tail of the whole prompt is unchanged: what the plan keeps, and what follows.
    kept = {entry.first for entry in made.view.entries if not entry.is_generated}
    assert set(range(end - POLICY.tail_messages + following, end)) <= kept


def test_too_many_tokens_or_too_few_messages_after_the_boundary() -> None:
    request = whole_request(MESSAGES, sizes(len(MESSAGES)))
    record, room = plan(boundary_request(request)).record, request.budget_tokens
    tail = int(POLICY.tail_share * room)

    def applies(tokens: int, messages: int, room: int = room) -> bool:
        return leaves_room(record, tokens=tokens, messages=messages, policy=POLICY, room=room)

    assert applies(tail, 2)
    assert not applies(tail + 1, 2)
    assert not applies(tail, 1)
    assert not applies(1, 2, room=record.tokens_after)
    assert applies(1, 2, room=record.tokens_after + 1)
