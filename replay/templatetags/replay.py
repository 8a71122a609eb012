"""Template filters that format the results of replays."""

from __future__ import annotations

from django import template

from sessions.pages import figures
from sessions.selectors.compactions.reference_rates import REACTIONS

register = template.Library()


@register.filter
def share(value: float | None) -> str:
    """Format a share as a percentage, for example, `98.9%`, or a dash if there is none."""
    return figures.percent(value, 1) if value is not None else "–"


@register.filter
def change_from(value: int | None, base: int | None) -> str:
    """Return the change from `base` to `value`, for example, `−18%`, or a dash if either is missing."""
    if value is None or not base:
        return "–"
    percent = round(100 * (value / base - 1))
    return f"{'−' if percent < 0 else '+' if percent > 0 else '±'}{abs(percent)}%"


@register.filter
def budget_label(label: str) -> str:
    """Format the label of a budget, for example, `50%` for the ratio `0.50` or `9,000 tokens`."""
    return f"{100 * float(label):.3g}%" if "." in label else f"{label} tokens"


@register.filter
def setting_value(value: object) -> str:
    """Format the value of a policy's setting."""
    if isinstance(value, list | tuple):
        return ", ".join(map(setting_value, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {each}" for name, each in value.items() if each is not None)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@register.filter
def reaction(how: str) -> str:
    """Return how the agent reacted to missing content, for example, “re-read it”."""
    return REACTIONS.get(how, how)
