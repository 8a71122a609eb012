"""Template filters that show a figure short, with its exact value on hover."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions.models import AgentSession
from sessions.pages import figures
from sessions.selectors.sessions import SubAgents
from sessions.selectors.token_budgets import Limit, limit_of

register = template.Library()

NO_VALUE = SafeString('<span class="none">–</span>')


@register.filter
def tokens(value: int | float | None) -> str:
    """`12.4k`, on hover `12,412 tokens`. The unit stands in the label or the column's head."""
    if value is None:
        return NO_VALUE
    return format_html(
        '<data value="{}" title="{} tokens">{}</data>', value, f"{value:,.0f}", figures.short_number(value)
    )


@register.filter
def tokens_signed(value: int | float) -> str:
    """`+1.24k`, on hover `+1,240 tokens`."""
    return format_html(
        '<data value="{}" title="{} tokens">{}{}</data>',
        value,
        f"{value:+,.0f}",
        "+" if value >= 0 else "",
        figures.short_number(value),
    )


@register.filter
def money(microusd: int | None) -> str:
    if microusd is None:
        return NO_VALUE
    return format_html(
        '<data value="{}" title="{}">{}</data>',
        microusd,
        figures.money_exact(microusd),
        figures.money(microusd),
    )


@register.filter
def cost(spent: AgentSession | SubAgents) -> str:
    """What a session's or some sub-agents' calls cost, saying aloud what of it has no price."""
    unpriced = spent.unpriced_turns
    if not spent.billed_tokens:
        return SafeString('<span class="none" title="No call reported its usage.">no usage</span>')
    if not unpriced:
        return money(spent.cost_microusd)
    if not spent.cost_microusd:
        return format_html(
            '<span class="unpriced" title="No price is known for the model of {} turns.">unpriced</span>',
            unpriced,
        )
    return format_html(
        '{} <span class="unpriced">+ {} unpriced turn{}</span>',
        money(spent.cost_microusd),
        unpriced,
        "" if unpriced == 1 else "s",
    )


@register.filter
def when(at: datetime | None) -> str:
    """An instant, in UTC; the page's script shows it in the viewer's own zone, in the same form."""
    if at is None:
        return NO_VALUE
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        utc.isoformat(timespec="seconds").replace("+00:00", "Z"),
        f"{utc:%Y-%m-%d %H:%M:%S}",
        f"{utc:%Y-%m-%d %H:%M}",
    )


@register.filter
def duration(span: timedelta) -> str:
    return figures.short_duration(span)


@register.filter
def text_size(characters: int) -> str:
    return figures.short_text_size(characters)


@register.filter
def limit(session: AgentSession) -> Limit | None:
    """The session's budget or window: what the size of its prompts is a share of."""
    return limit_of(session)


@register.filter
def percent_of(part: int, whole: int | None) -> str:
    return figures.percent(part, whole or 0)


@register.filter
def minus(value: int, other: int) -> int:
    return value - other


@register.filter
def share_bar(part: int, whole: int) -> str:
    """A bar that is filled by `part` of `whole`; decoration beside the figure that says it."""
    share = min(100.0, 100 * part / whole) if whole else 0.0
    level = "high" if share >= 90 else "raised" if share >= 70 else "low"
    return format_html(
        '<svg class="bar bar-{}" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect width="{}" height="4"/></svg>',
        level,
        f"{share:.1f}",
    )


#: The viewBox of a sparkline: its points are drawn in these units and stretched to the cell.
_SPARK_WIDTH, _SPARK_HEIGHT = 100, 24


@register.filter
def sparkline(sizes: Sequence[int], limit: Limit | None = None) -> str:
    """Prompt sizes as a line, with the limit as a dashed one where the prompts come near it."""
    if len(sizes) < 2:
        return NO_VALUE
    most = max(*sizes, 1)
    top = max(most, limit.tokens) if limit is not None and limit.tokens < 2 * most else most

    def height(tokens: int) -> str:
        return f"{_SPARK_HEIGHT - (_SPARK_HEIGHT - 2) * tokens / top:.1f}"

    step = _SPARK_WIDTH / (len(sizes) - 1)
    line = ""
    if limit is not None and limit.tokens <= top:
        y = height(limit.tokens)
        line = format_html('<line class="spark-limit" x1="0" x2="{}" y1="{}" y2="{}"/>', _SPARK_WIDTH, y, y)
    return format_html(
        '<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '{}<polyline points="{}"/></svg>',
        _SPARK_WIDTH,
        _SPARK_HEIGHT,
        f"prompt size from {figures.short_number(sizes[0])} to {figures.short_number(sizes[-1])} tokens, "
        f"at most {figures.short_number(most)}",
        line,
        " ".join(f"{step * n:.1f},{height(size)}" for n, size in enumerate(sizes)),
    )
