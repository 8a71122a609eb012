"""Itemized cost of a call at list prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from compaction.messages import Usage
from pricing import rates


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """A cost item: tokens, dollars per million tokens, and micro-dollars (None without a known price)."""

    name: str
    style: str
    tokens: int
    rate: Decimal | None
    microusd: int | None


_PARTS = (
    ("Uncached input", "uncached", "uncached_tokens"),
    ("Cache read", "cache_read", "cache_read_tokens"),
    ("Cache write", "cache_write", "cache_write_tokens"),
    ("Output", "output", "output_tokens"),
)


def cost_lines(model: str, usage: Usage, at: datetime) -> list[CostLine]:
    """Return the four items of a call at list prices, with cache writes at the five-minute rate."""
    table = [rate for rate in rates(model, at) if usage.prompt_tokens > rate.above or rate.above == 0]
    found = table[-1] if table else None
    return [
        _line(name, style, getattr(usage, field), getattr(found, style) if found else None)
        for name, style, field in _PARTS
    ]


def cost_remainder(lines: Sequence[CostLine], microusd: int | None) -> int:
    """Return the cost of a call minus the sum of its items, or 0 if they differ only by rounding."""
    listed = [line.microusd for line in lines if line.microusd is not None]
    remainder = (microusd or 0) - sum(listed)
    return remainder if listed and microusd is not None and abs(remainder) > len(listed) // 2 else 0


def _line(name: str, style: str, tokens: int, rate: Decimal | None) -> CostLine:
    """Build an item; `rate` is in dollars per token."""
    millions = None if rate is None else rate * 1_000_000
    spent = (
        None if millions is None else int((millions * tokens).quantize(Decimal(1), rounding=ROUND_HALF_UP))
    )
    return CostLine(name=name, style=style, tokens=tokens, rate=millions, microusd=spent)
