"""How items of a working memory are told in a line."""

from __future__ import annotations

from django import template

register = template.Library()

#: Characters of an item in a time line.
_LONGEST = 200


@register.filter
def short(item: str) -> str:
    """An item in one line: of a diff its file and how many lines came and went."""
    first, _, rest = item.partition("\n")
    if not rest:
        return first if len(first) <= _LONGEST else f"{first[: _LONGEST - 1]}…"
    lines = rest.splitlines()
    added, gone = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return f"{first[:_LONGEST]} (+{added} −{gone} lines)"
