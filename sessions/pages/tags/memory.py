"""Template filters for items of working memory."""

from __future__ import annotations

from django import template

register = template.Library()

#: The maximum length of an item in the history.
_MAX_LENGTH = 200


@register.filter
def short(item: str) -> str:
    """Shorten an item to one line. A diff becomes its file name and the number of changed lines."""
    first, _, rest = item.partition("\n")
    if not rest:
        return first if len(first) <= _MAX_LENGTH else f"{first[: _MAX_LENGTH - 1]}…"
    lines = rest.splitlines()
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return f"{first[:_MAX_LENGTH]} (+{added} −{removed} lines)"
