"""Template tags of the trends: changes between spans, bars, addresses."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions.pages import figures
from sessions.pages.trends.asked import Asked

register = template.Library()


@register.simple_tag
def change(now: int, before: int) -> str:
    """`+12 %` and the like: how much more or less than in the other span."""
    if not before:
        return (
            SafeString('<span class="none">new</span>') if now else SafeString('<span class="none">–</span>')
        )
    if now > 10 * before:
        return f"× {now / before:,.0f}"
    percent = 100 * (now - before) / before
    sign = "+" if percent > 0 else "−" if percent < 0 else "±"
    return f"{sign}{abs(percent):.0f} %"


@register.filter
def money_signed(microusd: int) -> str:
    """As `money`, with a minus where more was spent than saved."""
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
def plain_bar(part: int, whole: int) -> str:
    """A bar that is filled by `part` of `whole`; decoration beside the figure that says it."""
    share = min(100.0, 100 * part / whole) if whole else 0.0
    return format_html(
        '<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect width="{}" height="4"/></svg>',
        f"{share:.1f}",
    )


@register.simple_tag
def asked_query(asked: Asked, narrowed_to: str = "") -> str:
    """The query of the page as it is shown; with a key, narrowed to that one of its groups.

    Narrowed to one of them there is nothing to split by it any more: the sessions take its place.
    """
    if not narrowed_to:
        return asked.query()
    return asked.query(**{asked.group: narrowed_to, "group": "session"})
