"""Usage and cost."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from contextapp_client.types.common import BilledTokens


class UsageRow(TypedDict):
    """Totals. Costs are in micro-dollars, without unpriced turns. Rows contain the values of their groups."""

    turns: int
    unpriced_turns: int
    billed_tokens: BilledTokens
    cost_microusd: int
    day: NotRequired[str]
    model: NotRequired[str]
    agent: NotRequired[str]
    tag: NotRequired[str]


class Usage(TypedDict):
    """Tokens and cost in a period."""

    time_zone: str
    group_by: list[str]
    total: UsageRow
    data: list[UsageRow]
