"""Compute the turn that a push adds to a session. Does not use the database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pricing
from compaction import dialects
from compaction.capabilities import capabilities_of
from compaction.messages import Message
from compaction.planning.preparation import is_near_hard
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration
from compaction.sizes.meter import spike_of
from compaction.view.components import TOOLS
from pricing.custom import custom_cost
from sessions.models import TurnSource
from sessions.selectors.token_budgets import budget_tokens, policy_of, window_after
from sessions.services.push.values import NewTurn, Push, SessionState


def turn_compute(session: SessionState, push: Push) -> NewTurn:
    """Return the turn with the session's counters after it, in constant time."""
    first, format = session.message_count, session.format or _detected(push)
    values = [
        replace(_reread(message.value, format), position=first + index, turn=session.turn_count)
        for index, message in enumerate(push.messages)
    ]
    model = push.model or session.model
    context, shown, preamble_version = session.context, session.shown, session.preamble_version
    if push.preamble is not None and push.preamble.hash != session.preamble_hash:
        sizes = push.preamble.components
        # Tools that were removed for lack of room stay removed until a compaction restores them.
        kept = {**sizes, TOOLS: 0} if session.has_shed_tools else sizes
        context, shown, preamble_version = context.set(**sizes), shown.set(**kept), preamble_version + 1
    served, prompt = shown.prompt_of(values), context.prompt_of(values)
    following = model_after(session, push)
    window = window_after(session.context_window, model=session.model, following=following)
    budget = budget_tokens(own=session.budget_tokens, context_window=window, model=following)
    continuation = session.continuation
    if first and session.format is None:
        continuation = continuation.detected(format)
    calibration, shown_after = _calibration(session, push, served, prompt), shown.add(values)
    return NewTurn(
        session=session,
        index=session.turn_count,
        first_position=first,
        format=format,
        model=model,
        session_model=following,
        context_window=window,
        cost_microusd=push_cost(model, push),
        calibration=calibration,
        budget=budget,
        values=values,
        prompt=prompt,
        served=served,
        shown=shown_after,
        context=context.add(values),
        continuation=continuation.after(values, format),
        preamble_version=preamble_version,
        spike=spike_of(values, context=context, turns=session.turn_count, budget=budget),
        plan_turn=_plan_turn(
            session,
            is_same=(format, following, preamble_version)
            == (session.format, session.model, session.preamble_version),
            tokens=calibration.provider_at_most(shown_after.total),
            budget=budget,
            model=following,
        ),
        source=push.source,
        is_stateful=push.is_stateful,
        has_other_prompt=push.has_other_prompt,
        is_repaired=push.is_repaired,
        push_position=first + len(values) if push.source is TurnSource.PUSH else session.push_position,
    )


def model_after(session: SessionState, push: Push) -> str:
    """Return the session's model after the push: that of its call, unless the call had another prompt.

    A small model that only writes a title, for example, answers although its window is smaller than the
    session's prompt. The next prompt is not for this model, so it need not fit that window.
    """
    model = push.model or session.model
    if push.usage is None or session.model in {"", model}:
        return model
    window = window_after(session.context_window, model=session.model, following=model)
    size = session.calibration.provider(session.shown.total)
    had_other_prompt = window is not None and size > window and 2 * push.usage.prompt_tokens < size
    return session.model if had_other_prompt else model


def _plan_turn(session: SessionState, *, is_same: bool, tokens: int, budget: int, model: str) -> int | None:
    """Return the plan boundary of the next hard compaction, or None if it must plan the whole prompt.

    `is_same`: the turn changes nothing else that the plan depends on.
    """
    if is_same and session.plan_turn is not None:
        return session.plan_turn
    policy = policy_of(session.policy)
    if not is_near_hard(tokens=tokens, budget=budget, policy=policy):
        return None
    # If thinking is bound to the prompt before it, an edit also changes the messages after the boundary.
    return None if capabilities_of(model).bound_thinking else session.turn_count


def _detected(push: Push) -> str | None:
    """Return the dialect of the pushed messages and tools, or None if they fit several."""
    tools = push.preamble.tool_definitions if push.preamble is not None else ()
    return dialects.detect_session([message.value.source for message in push.messages], tools)


def _reread(message: Message, format: str | None) -> Message:
    """Return the message, parsed again if the session has another dialect.

    The push was parsed with the dialect known at that time; another push may have determined it since.
    """
    if message.format == format or format is None:
        return message
    return dialects.parse_message(message.source, default=format, position=0, turn=0, tokens=message.tokens)


def push_cost(model: str, push: Push) -> int | None:
    """Return the cost of the turn's call in micro-dollars, at the custom price if one applies."""
    if push.usage is None:
        return None
    if push.prices:
        day = (push.at or datetime.now(UTC)).astimezone(UTC).date()
        cost = custom_cost(push.prices, model, push.usage, day)
        if cost is not None:
            return cost
    one_hour_tokens = push.cache_write_1h_tokens
    return pricing.price(model, push.usage, push.at, cache_write_1h_tokens=one_hour_tokens).microusd


def _calibration(
    session: SessionState, push: Push, served: TokenBreakdown, prompt: TokenBreakdown
) -> Calibration:
    """Return the calibration, updated with the prompt size that this turn reports."""
    if push.usage is None:
        return session.calibration
    cleared = push.provider.cleared_tokens if push.provider is not None else 0
    known = push.prompt_estimate
    return session.calibration.updated(
        sizes=(served.total, prompt.total) if known is None else (known,),
        reported=push.usage.prompt_tokens + cleared,
    )
