"""What a call cost, part by part, at list prices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from compaction.messages import Usage
from pricing import rates


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """One part of a call: tokens, dollars a million of them, and micro-dollars; None without a price."""

    name: str
    style: str
    tokens: int
    rate: Decimal | None
    microusd: int | None


_PARTS = (
    ("input, uncached", "uncached", "uncached_tokens"),
    ("input, read from the cache", "cache_read", "cache_read_tokens"),
    ("input, written to the cache", "cache_write", "cache_write_tokens"),
    ("output", "output", "output_tokens"),
)


def cost_lines(model: str, usage: Usage, at: datetime) -> list[CostLine]:
    """The four parts. A part of the cache that was written for an hour costs more than its line says."""
    table = [rate for rate in rates(model, at) if usage.prompt_tokens > rate.above or rate.above == 0]
    found = table[-1] if table else None
    return [
        _line(name, style, getattr(usage, field), getattr(found, style) if found else None)
        for name, style, field in _PARTS
    ]


def _line(name: str, style: str, tokens: int, rate: Decimal | None) -> CostLine:
    """`rate` is dollars a token, which is as many micro-dollars for a million of them."""
    millions = None if rate is None else rate * 1_000_000
    spent = (
        None if millions is None else int((millions * tokens).quantize(Decimal(1), rounding=ROUND_HALF_UP))
    )
    return CostLine(name=name, style=style, tokens=tokens, rate=millions, microusd=spent)
