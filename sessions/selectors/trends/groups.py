"""The groupings of usage. In SQL, `s` is the session, `r` a row of usage, and `tag` a tag of the session."""

from __future__ import annotations

from collections.abc import Sequence

#: The SQL expression of each group; "" for sessions without a value.
GROUP_KEYS = {
    "agent": "s.agent",
    "model": "coalesce(nullif(r.model, ''), s.model)",
    "tag": "coalesce(tag, '')",
    "member": "coalesce(s.created_by_id::text, '')",
    "session": "r.session_id::text",
}
GROUPS = tuple(GROUP_KEYS)
#: Separates the keys of a row that is grouped by two properties.
SEPARATOR = "\x1f"


def group_names(group: str) -> Sequence[str]:
    """Return the properties of a grouping: one, or two separated by a comma."""
    return group.split(",")


def group_key(group: str, **expressions: str) -> str:
    """Return the SQL expression of a grouping's key. `expressions` replace those of `GROUP_KEYS`."""
    keys = [(GROUP_KEYS | expressions)[name] for name in group_names(group)]
    return keys[0] if len(keys) == 1 else f"concat_ws(chr(31), {', '.join(keys)})"


def tags_join(group: str) -> str:
    """Return the SQL that joins the tags of the session if the grouping needs them."""
    return "LEFT JOIN LATERAL unnest(s.tags) AS tag ON true" if "tag" in group_names(group) else ""
