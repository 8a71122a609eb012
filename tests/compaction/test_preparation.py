"""Hard compactions planned up to the plan boundary, before the trigger fires."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.calibration import Calibration
from compaction.pipeline import PlanRequest, plan
from compaction.policy import Budget, get_policy
from compaction.preparation import (
    LEAD,
    boundary_request,
    is_near_hard,
    leaves_room,
    record_extended,
)
from compaction.view import apply
from tests.compaction.builders import COUNTER, parse, tool_loop

MESSAGES = parse(tool_loop(60, width=12))
POLICY = get_policy("balanced")


def sizes(end: int) -> int:
    return sum(message.tokens for message in MESSAGES[:end])


def test_the_boundary_is_set_below_the_hard_trigger_only() -> None:
    def near(share: float, **changes: float) -> bool:
        return is_near_hard(tokens=int(1_000 * share), budget=1_000, policy=replace(POLICY, **changes))

    assert [near(share) for share in (0.84, 0.85, 0.94, 0.95)] == [False, True, True, False]
    assert not near(0.99, hard=0.0, soft=0.0)
    assert not any(near(share / 100, hard=1.0, target=1.0, soft=0.0) for share in range(101))


@pytest.mark.parametrize("following", [2, 4])
def test_the_plan_leaves_room_for_the_messages_that_follow(following: int) -> None:
    end = len(MESSAGES) - following
    budget = int(sizes(end) / (POLICY.hard - LEAD / 2))
    whole = PlanRequest(
        view=apply((), MESSAGES[:end]),
        policy=POLICY,
        counter=COUNTER,
        budget=Budget(input_tokens=budget),
        trigger="hard",
    )
    request = boundary_request(whole)
    made, tokens = plan(request), sizes(len(MESSAGES)) - sizes(end)
    assert request.goal < whole.goal
    assert request.layout.tail_tokens <= whole.layout.tail_tokens
    assert leaves_room(made.record, tokens=tokens, messages=following, policy=POLICY, room=budget)
    record = record_extended(
        made.record,
        tokens=tokens,
        newest=MESSAGES[end:],
        policy=POLICY,
        calibration=Calibration(),
        room=budget,
    )
    # The record is that of the whole prompt.
    assert record.tokens_before == sizes(len(MESSAGES))
    assert record.tokens_after == made.view.tokens + tokens
    assert record.tokens_saved == record.tokens_before - record.tokens_after == made.record.tokens_saved
    assert record.target == whole.goal
    assert record.fits
    # The tail of the whole prompt is unchanged: what the plan keeps, and what follows.
    kept = {entry.first for entry in made.view.entries if not entry.is_generated}
    assert set(range(end - POLICY.tail_messages + following, end)) <= kept


def test_too_many_tokens_or_too_few_messages_after_the_boundary() -> None:
    request = PlanRequest(
        view=apply((), MESSAGES),
        policy=POLICY,
        counter=COUNTER,
        budget=Budget(input_tokens=sizes(len(MESSAGES))),
        trigger="hard",
    )
    record, room = plan(boundary_request(request)).record, request.budget_tokens
    tail = int(POLICY.tail_share * room)

    def applies(tokens: int, messages: int, room: int = room) -> bool:
        return leaves_room(record, tokens=tokens, messages=messages, policy=POLICY, room=room)

    assert applies(tail, 2)
    assert not applies(tail + 1, 2)
    assert not applies(tail, 1)
    assert not applies(1, 2, room=record.tokens_after)
