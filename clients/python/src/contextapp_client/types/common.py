"""Types that several endpoints share."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Format = Literal["anthropic", "openai", "openai-responses", "gemini"]

#: A JSON object in the provider's format.
JsonObject = dict[str, Any]


class BilledTokens(TypedDict):
    """Billed tokens in four disjoint parts."""

    uncached: int
    cache_read: int
    cache_write: int
    output: int


class PromptSize(TypedDict):
    """Estimated tokens of the current prompt, of the prompt without compaction, and the budget.

    `occupancy` is the share of the budget in use: `tokens` as the provider counts them, divided by `budget`.
    """

    tokens: int
    raw_tokens: int
    budget: int
    occupancy: float


class Positions(TypedDict):
    """The first and last position of consecutive messages, both inclusive."""

    first: int
    last: int


class Redacted(TypedDict):
    """Secrets of one kind that were redacted in a push."""

    kind: str
    count: int
