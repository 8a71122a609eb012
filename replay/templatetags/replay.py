"""Figures of replays, as pages write them."""

from __future__ import annotations

from django import template

from sessions.selectors.reference_rates import HOW

register = template.Library()


@register.filter
def share(value: float) -> str:
    """A share as per cent: `98.9 %`; nothing is rounded to none or to all."""
    percent = 100 * value
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.0f} %" if percent in (0, 100) else f"{percent:.1f} %"


@register.filter
def change_from(value: int | None, base: int | None) -> str:
    """By how much `value` differs from `base`: `−18 %`; a dash where there is nothing to compare."""
    if value is None or not base:
        return "–"
    percent = round(100 * (value / base - 1))
    return f"{'−' if percent < 0 else '+' if percent > 0 else '±'}{abs(percent)} %"


@register.filter
def how_told(how: str) -> str:
    """What the agent did about a reference: `read it again`."""
    return HOW.get(how, how)
