"""Template filters that abbreviate numbers, with the exact value as a tooltip."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions.models import AgentSession
from sessions.pages import figures
from sessions.selectors.lists.tree import Descendants, TreeNode
from sessions.selectors.token_budgets import Limit, limit_of

register = template.Library()

NO_VALUE = SafeString('<span class="none">–</span>')


@register.filter
def tokens(value: int | float | None) -> str:
    """Format tokens as `12.4k` with the tooltip `12,412 tokens`; the label contains the unit."""
    if value is None:
        return NO_VALUE
    return format_html(
        '<data value="{}" title="{} tokens">{}</data>', value, f"{value:,.0f}", figures.short_number(value)
    )


@register.filter
def exact(value: int | None) -> str:
    """Format a count with all digits: `12,412`. A missing one is ""."""
    return "" if value is None else f"{value:,}"


@register.filter
def tokens_signed(value: int | float) -> str:
    """Format a change as `+1.24k` with the tooltip `+1,240 tokens`."""
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
def file_size(size: int) -> str:
    """Format bytes as `64 MB` or `1.5 KB`."""
    return figures.file_size(size)


@register.filter
def cost(spent: AgentSession | Descendants | TreeNode) -> str:
    """Format the cost of calls, including the number of turns without a known price."""
    unpriced = spent.unpriced_turns
    # Some logs report the cost of their calls, but no tokens.
    if not spent.billed_tokens and not spent.cost_microusd:
        return SafeString('<span class="none" title="No call reported its usage.">no usage</span>')
    if not unpriced:
        return money(spent.cost_microusd)
    if not spent.cost_microusd:
        return format_html(
            '<span class="unpriced" title="{} turn{} used a model without a known price.">unpriced</span>',
            unpriced,
            "" if unpriced == 1 else "s",
        )
    return format_html(
        '{} <span class="unpriced">+ {} unpriced turn{}</span>',
        money(spent.cost_microusd),
        unpriced,
        "" if unpriced == 1 else "s",
    )


@register.filter
def when(at: datetime | None) -> str:
    """Format a time in UTC; app.js converts it to the browser's time zone in the same format."""
    if at is None:
        return NO_VALUE
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        utc.isoformat(timespec="seconds").replace("+00:00", "Z"),
        f"{utc:%Y-%m-%d %H:%M:%S}",
        f"{utc:%b} {utc.day}, {utc:%Y, %H:%M}",
    )


@register.filter
def last_folders(path: object) -> str:
    """Shorten a path to its last two folders: `…/work/shop`."""
    parts = str(path).replace("\\", "/").rstrip("/").split("/")
    return "…/" + "/".join(parts[-2:]) if len(parts) > 3 else str(path)


@register.filter
def duration(span: timedelta) -> str:
    return figures.short_duration(span)


@register.filter
def milliseconds(value: int) -> str:
    return figures.short_milliseconds(value)


@register.filter
def text_size(characters: int) -> str:
    return figures.short_text_size(characters)


@register.filter
def limit(session: AgentSession) -> Limit | None:
    """Return the session's budget or context window."""
    return limit_of(session)


@register.filter
def percent_of(part: float, whole: float | None) -> str:
    return figures.percent(part, whole or 0)


@register.filter
def percent_kept_out(session: AgentSession) -> str:
    """Return the share of the transcript that compaction keeps out of the next prompt; "" if none."""
    whole, shown = (sum(sizes.values()) for sizes in (session.context_components, session.shown_components))
    return figures.percent(whole - shown, whole) if 0 < shown < whole else ""


@register.filter
def minus(value: int, other: int) -> int:
    return value - other


@register.filter
def limit_bar(size: int, limit: Limit) -> str:
    """Draw a bar filled by a prompt's share of its limit. Decorative: the number next to it is accessible.

    Prompts may fill their budget almost completely, because compaction then holds them below it: only more
    than the budget is a problem. contextapp does not enforce a context window, so 90% of it is a warning.
    """
    share = 100 * size / limit.tokens
    if limit.name == "budget":
        level = "over" if share > 100 else "within"
    else:
        level = "near" if share >= 90 else "within"
    return format_html(
        '<svg class="bar bar-{}" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect width="{}" height="4"/></svg>',
        level,
        f"{min(share, 100.0):.1f}",
    )


#: Units of a sparkline's viewBox, which is stretched to the table cell.
_SPARK_WIDTH, _SPARK_HEIGHT = 100, 24


@register.filter
def sparkline(sizes: Sequence[int], limit: Limit | None = None) -> str:
    """Draw prompt sizes as a line, with the limit as a dashed line if they come near it."""
    if len(sizes) < 2:
        return NO_VALUE
    maximum = max(*sizes, 1)
    top = max(maximum, limit.tokens) if limit is not None and limit.tokens < 2 * maximum else maximum

    def height(tokens: int) -> str:
        return f"{_SPARK_HEIGHT - (_SPARK_HEIGHT - 2) * tokens / top:.1f}"

    step = _SPARK_WIDTH / (len(sizes) - 1)
    line = ""
    if limit is not None and limit.tokens <= top:
        y = height(limit.tokens)
        line = format_html(
            '<line class="spark-limit {}" x1="0" x2="{}" y1="{}" y2="{}"/>', limit.name, _SPARK_WIDTH, y, y
        )
    return format_html(
        '<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '{}<polyline points="{}"/></svg>',
        _SPARK_WIDTH,
        _SPARK_HEIGHT,
        f"Prompt size from {figures.short_number(sizes[0])} to {figures.short_number(sizes[-1])} tokens, "
        f"peak {figures.short_number(maximum)}",
        line,
        " ".join(f"{step * n:.1f},{height(size)}" for n, size in enumerate(sizes)),
    )
