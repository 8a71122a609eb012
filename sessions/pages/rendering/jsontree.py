"""JSON as a tree of collapsible nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from django.utils.html import escape
from django.utils.safestring import SafeString

from sessions.pages.text import visible

#: Longer JSON is displayed as text.
MAX_LENGTH = 100_000
#: Values per tree, and the depth up to which nodes are rendered.
_MAX_NODES, _MAX_DEPTH = 600, 24
#: Nodes with at most this many entries are open at first, on the first two levels.
_OPEN_ENTRIES = 12
#: Strings up to this length are on one line.
_SHORT = 200


def json_parse(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the object or array of a JSON text, or None if the text is something else."""
    start = text.lstrip()[:1]
    if start not in ("{", "[") or len(text) > MAX_LENGTH:
        return None
    try:
        value = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    return value if value and isinstance(value, dict | list) else None


def json_html(value: Any) -> SafeString:
    """Return a value as a tree: `<details>` for objects and arrays."""
    return SafeString(f'<div class="json-tree">{_node(value, 0, iter(range(_MAX_NODES)))}</div>')


def _node(value: Any, depth: int, budget: Iterator[int]) -> str:
    if not isinstance(value, dict | list) or not value:
        return _scalar(value)
    count = len(value)
    label = f"{{{count} key{'s' * (count != 1)}}}" if isinstance(value, dict) else f"[{count}]"
    if depth >= _MAX_DEPTH:
        return f'<span class="json-more">{label}</span>'
    is_open = " open" if depth == 0 or (depth == 1 and count <= _OPEN_ENTRIES) else ""
    return (
        f'<details{is_open}><summary class="json-label">{label}</summary>'
        f"<ul>{_entries(value, depth, budget)}</ul></details>"
    )


def _entries(value: dict[str, Any] | list[Any], depth: int, budget: Iterator[int]) -> str:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    html: list[str] = []
    for key, item in pairs:
        if next(budget, None) is None:
            html.append(f'<li class="json-more">{len(value) - len(html):,} more</li>')
            break
        name = escape(visible(str(key)))
        html.append(f'<li><span class="json-key">{name}</span> {_node(item, depth + 1, budget)}</li>')
    return "".join(html)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        shown = escape(visible(value))
        if len(value) <= _SHORT and "\n" not in value:
            return f'<span class="json-string">{shown}</span>'
        return f'<pre class="json-string">{shown}</pre>'
    kind = "json-literal" if value is None or isinstance(value, bool) else "json-number"
    return f'<span class="{kind}">{escape(orjson.dumps(value).decode())}</span>'
