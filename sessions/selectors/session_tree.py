"""The sub-agents and forks of a session, with the sums of everything below each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from sessions.models import AgentSession

#: Levels and sessions of a tree that are displayed.
MAX_DEPTH, MAX_SESSIONS = 8, 300

_DESCENDANTS = f"""
WITH RECURSIVE tree (id, depth) AS (
    SELECT id, 0 FROM {AgentSession._meta.db_table} WHERE id = %(root)s
    UNION ALL
    SELECT child.id, tree.depth + 1 FROM {AgentSession._meta.db_table} child
      JOIN tree ON child.parent_id = tree.id
     WHERE tree.depth < %(depth)s AND child.project_id = %(project)s
)
SELECT id FROM tree WHERE depth > 0 LIMIT %(limit)s
"""  # noqa: S608  the pieces are names


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A session in a tree. The totals include the session itself and everything below it.

    `depth` is 0 for the session of the page. Costs are in micro-dollars.
    """

    session: AgentSession
    depth: int
    sessions: int
    turns: int
    billed_tokens: int
    cost_microusd: int
    unpriced_turns: int

    @property
    def is_fork(self) -> bool:
        return self.session.forked_at is not None

    @property
    def has_children(self) -> bool:
        return self.sessions > 1


def session_tree(*, session: AgentSession) -> list[TreeNode]:
    """Return the session and its descendants in the order of a tree, or nothing without any. Two queries."""
    with connection.cursor() as cursor:
        cursor.execute(
            _DESCENDANTS,
            {
                "root": session.pk,
                "project": session.project_id,
                "depth": MAX_DEPTH,
                "limit": MAX_SESSIONS,
            },
        )
        ids = [id for (id,) in cursor.fetchall()]
    if not ids:
        return []
    children: defaultdict[UUID | None, list[AgentSession]] = defaultdict(list)
    for child in AgentSession.objects.filter(pk__in=ids).order_by("started_at", "id"):
        children[child.parent_id].append(child)
    return list(_nodes(session, children, 0))


def _nodes(
    session: AgentSession, children: dict[UUID | None, list[AgentSession]], depth: int
) -> Iterator[TreeNode]:
    below = [node for child in children[session.pk] for node in _nodes(child, children, depth + 1)]
    direct = [node for node in below if node.depth == depth + 1]
    yield TreeNode(
        session=session,
        depth=depth,
        sessions=1 + sum(node.sessions for node in direct),
        turns=session.turn_count + sum(node.turns for node in direct),
        billed_tokens=session.billed_tokens + sum(node.billed_tokens for node in direct),
        cost_microusd=session.cost_microusd + sum(node.cost_microusd for node in direct),
        unpriced_turns=session.unpriced_turns + sum(node.unpriced_turns for node in direct),
    )
    yield from below


def names_with_ancestors(*, session: AgentSession) -> set[str]:
    """Return the external ids of a session and of the sessions above it. One query per level."""
    found: set[str] = set()
    above: AgentSession | None = session
    while above is not None and above.external_id not in found:
        found.add(above.external_id)
        above = above.parent
    return found


def tree_label(nodes: Sequence[TreeNode]) -> str:
    """Return what is below the first node, for example "3 sub-agents and 1 fork"."""
    forks = sum(node.is_fork for node in nodes[1:])
    agents = len(nodes) - 1 - forks
    parts = [
        f"{count} {name}{'' if count == 1 else 's'}"
        for count, name in ((agents, "sub-agent"), (forks, "fork"))
        if count
    ]
    return " and ".join(parts)
