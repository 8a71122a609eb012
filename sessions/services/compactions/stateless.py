"""Compact a list of messages that the caller stores. Stores nothing and uses no database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pricing
from compaction import dialects
from compaction.adapters.tiktoken_counter import counter
from compaction.capabilities import capabilities_of
from compaction.edits import Edit
from compaction.message_window import MessageWindow, TrimStats
from compaction.messages import Message, Role
from compaction.planning.pipeline import Plan, PlanRequest, plan
from compaction.policy import Budget
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration
from compaction.strategies.clear_thinking import edits_from
from compaction.view import View, apply
from compaction.view.components import Components
from sessions.selectors.token_budgets import budget_tokens, calibration_of, policy_of
from sessions.services.ingestion import json_tokens
from sessions.store import bodies
from sessions.store.handles import handle_of
from sessions.store.prompt_bytes import RequestParts, messages_of_view, request_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerPrompt:
    """A prompt that the caller stores, and how to compact it.

    `raw` and `values` are the same messages as JSON bytes and as parsed JSON. Without `format`, it is
    detected. Without `own_budget`, the budget is the model's. Unless `is_forced`, messages below the policy's
    hard trigger stay unchanged.
    """

    raw: Sequence[bytes]
    values: Sequence[Any]
    format: str | None = None
    system: Any = None
    tools: Sequence[Any] | None = None
    model: str = ""
    own_budget: int | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)
    window: MessageWindow | None = None
    is_forced: bool = False

    @property
    def served_format(self) -> str:
        """The dialect of the compacted prompt."""
        detected = self.format or dialects.detect_session(self.values, self.tools or ())
        return dialects.get_dialect(detected).name

    @property
    def budget(self) -> int:
        window = pricing.context_window(self.model)
        return budget_tokens(own=self.own_budget, context_window=window, model=self.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedPrompt:
    """A compacted prompt: the fields of a provider request, ready for orjson, and the statistics.

    `sent` is the breakdown of what the caller sent, `before` that of what the window left. `window` is None
    if the caller set no window.
    """

    fields: Mapping[str, Any]
    format: str
    budget: int
    calibration: Calibration
    sent: TokenBreakdown
    before: TokenBreakdown
    after: TokenBreakdown
    plan: Plan
    window: TrimStats | None


def prompt_compact(prompt: CallerPrompt) -> CompactedPrompt:
    """Return the prompt after the message window and a compaction, without a model.

    Positions of edits are indices of the caller's list. The same input gives the same prompt.
    """
    format = prompt.served_format
    messages = tuple(_numbered(dialects.parse_mixed(prompt.values, default=format, counter=counter())))
    system, tools = (bodies.json_bytes(value) if value else None for value in (prompt.system, prompt.tools))
    components = Components(system=json_tokens(system), tools=json_tokens(tools))
    trimmed = prompt.window.trim(messages) if prompt.window is not None else None
    view = apply((), trimmed.messages if trimmed else messages, components=components)
    calibration = calibration_of({}, model=prompt.model)
    request = _request(prompt, view, calibration)
    cleared: tuple[Edit, ...] = ()
    if trimmed is not None and trimmed.stats.dropped_messages and request.capabilities.bound_thinking:
        cleared = edits_from(0, view, request.context())  # the window has changed the prompt before it
        request = replace(request, view=view.with_edits(cleared))
    result = plan(request)
    result = replace(result, edits=(*cleared, *result.edits))
    shown = TokenBreakdown.of_view(result.view)
    compacted, after = messages_of_view(result.view, dict(enumerate(prompt.raw)), format)
    fields = request_fields(
        compacted,
        RequestParts(
            stored_format=format,
            format=format,
            system=system,
            tools=tools if shown.tokens.get("tools") else None,
            continuation=after,
            capabilities=request.capabilities,
        ),
    )
    return CompactedPrompt(
        fields=fields,
        format=format,
        budget=prompt.budget,
        calibration=calibration,
        sent=TokenBreakdown().set(system=components.system, tools=components.tools).add(messages),
        before=TokenBreakdown.of_view(view),
        after=shown,
        plan=result,
        window=trimmed.stats if trimmed else None,
    )


def _numbered(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages with their turns. Each turn begins with a message of the model."""
    turn = 0
    for message in messages:
        turn += message.role is Role.ASSISTANT
        yield replace(message, turn=turn)


def _request(prompt: CallerPrompt, view: View, calibration: Calibration) -> PlanRequest:
    return PlanRequest(
        view=view,
        policy=policy_of(prompt.policy, model=prompt.model),
        counter=counter(),
        budget=Budget(input_tokens=prompt.budget),
        trigger="user" if prompt.is_forced else None,
        calibration=calibration,
        capabilities=capabilities_of(prompt.model),
        make_handle=partial(_handle, prompt.raw),
    )


def _handle(raw: Sequence[bytes], position: int, part: int) -> str:
    """Return a handle that depends on the content only: positions differ in the caller's next list."""
    return handle_of(hashlib.sha256(b"%d:%b" % (part, raw[position])).digest())
