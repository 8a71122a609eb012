"""Template tags for trends: changes between periods, signed amounts and bars."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import accumulate

from django import template
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from sessions.pages import figures
from sessions.selectors.days import Span

register = template.Library()


@register.simple_tag
def change(current: int, previous: int) -> str:
    """Return the change from the previous period, for example, `+12%`, `−0.4%` or `×14`."""
    if not previous:
        text = "new" if current else "–"
        return SafeString(f'<span class="none">{text}</span>')
    if current > 10 * previous:
        return f"×{current / previous:,.0f}"
    percent = 100 * (current - previous) / previous
    size = f"{abs(percent):.{1 if abs(percent) < 1 else 0}f}"
    if not float(size):
        return "±0%"
    return f"{'+' if percent > 0 else '−'}{size}%"


@register.filter
def date_range(span: Span) -> str:
    """Format a period, for example, `Oct 24 – Nov 22, 2026`."""
    first, last = span.first, span.last
    if first == last:
        return date_format(last, "M j, Y")
    first_format = "M j" if first.year == last.year else "M j, Y"
    return f"{date_format(first, first_format)} – {date_format(last, 'M j, Y')}"


@register.filter
def bucket_label(first: date, bucket: str) -> str:
    """Name a day, week or month like the charts: `Nov 22, 2026`, `Week of Nov 22, 2026` or `Nov 2026`."""
    if bucket == "month":
        return date_format(first, "M Y")
    day = date_format(first, "M j, Y")
    return f"Week of {day}" if bucket == "week" else day


@register.filter
def money_signed(microusd: int) -> str:
    """Format micro-dollars like `money`, with a minus sign for negative amounts."""
    sign = "−" if microusd < 0 else ""
    return format_html(
        '<data value="{}" title="{}{}">{}{}</data>',
        microusd,
        sign,
        figures.money_exact(abs(microusd)),
        sign,
        figures.money(abs(microusd)),
    )


@register.filter
def money_saved(microusd: int) -> str:
    """Format net savings like `money_signed`: green, or red if compaction cost more than it saved."""
    tone = "good" if microusd > 0 else "bad" if microusd < 0 else ""
    return format_html('<span class="{}">{}</span>', tone, money_signed(microusd))


@register.filter
def money_change(microusd: int) -> str:
    """Format a change in micro-dollars, for example, `+$10.40` or `−$0.30`."""
    return format_html("{}{}", "+" if microusd > 0 else "", money_signed(microusd))


@register.filter
def plain_bar(part: int, whole: int) -> str:
    """Draw a bar filled by `part` of `whole`. Decorative: the number next to it has the value."""
    share = min(100.0, 100 * part / whole) if whole else 0.0
    return format_html(
        '<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect width="{}" height="4"/></svg>',
        f"{share:.1f}",
    )


@register.filter
def stacked_bar(components: Sequence[tuple[str, str, int]]) -> str:
    """Draw a bar of the components of a prompt: key, name and tokens. Decorative, like `plain_bar`."""
    ends = list(accumulate((tokens for _, _, tokens in components), initial=0))
    pieces = (
        (key, f"{100 * start / ends[-1]:.2f}", f"{100 * tokens / ends[-1]:.2f}")
        for (key, _, tokens), start in zip(components, ends, strict=False)
    )
    return format_html(
        '<svg class="bar stacked" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">{}</svg>',
        format_html_join("", '<rect class="component-{}" x="{}" width="{}" height="4"/>', pieces),
    )
