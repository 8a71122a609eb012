"""The sub-agents and forks of sessions, with the totals of everything below each session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
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

_SUMMED = """
forked_at IS NOT NULL, uncached_tokens + cache_read_tokens + cache_write_tokens + output_tokens,
cost_microusd, unpriced_turns
"""

# `UNION` skips sessions that it has already found, so a cycle of parents does not recurse forever.
# With `OFFSET 0`, Postgres looks up the children of each session found, instead of reading all sessions.
_DESCENDANT_SUMS = f"""
WITH RECURSIVE tree (root, id, is_fork, billed_tokens, cost_microusd, unpriced_turns) AS (
    SELECT parent_id, id, {_SUMMED} FROM {AgentSession._meta.db_table}
     WHERE parent_id = ANY(%(roots)s) AND project_id = %(project)s
    UNION
    SELECT tree.root, child.* FROM tree CROSS JOIN LATERAL (
        SELECT id, {_SUMMED} FROM {AgentSession._meta.db_table}
         WHERE parent_id = tree.id AND project_id = %(project)s OFFSET 0
    ) child
)
SELECT root, count(*) FILTER (WHERE NOT is_fork), count(*) FILTER (WHERE is_fork),
       sum(billed_tokens)::bigint, sum(cost_microusd)::bigint, sum(unpriced_turns)::bigint
  FROM tree GROUP BY root
"""  # noqa: S608  the pieces are names


@dataclass(frozen=True, slots=True, kw_only=True)
class Descendants:
    """Totals of all sub-agents and forks below a session, which its own totals do not include."""

    sub_agents: int
    forks: int
    billed_tokens: int
    cost_microusd: int
    unpriced_turns: int

    @property
    def sessions(self) -> int:
        return self.sub_agents + self.forks

    def __str__(self) -> str:
        counts = ((self.sub_agents, "sub-agent"), (self.forks, "fork"))
        return " and ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in counts if count)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A session in a tree. The totals include the session itself and everything below it.

    `depth` is 0 for the session of the page. Costs are in micro-dollars.
    """

    session: AgentSession
    depth: int
    descendants: Descendants | None

    @property
    def is_fork(self) -> bool:
        return self.session.forked_at is not None

    @property
    def billed_tokens(self) -> int:
        return self.session.billed_tokens + (self.descendants.billed_tokens if self.descendants else 0)

    @property
    def cost_microusd(self) -> int:
        return self.session.cost_microusd + (self.descendants.cost_microusd if self.descendants else 0)

    @property
    def unpriced_turns(self) -> int:
        return self.session.unpriced_turns + (self.descendants.unpriced_turns if self.descendants else 0)


def descendants_sum(*, project_id: UUID, roots: Sequence[UUID]) -> dict[UUID, Descendants]:
    """Return the totals below each of these sessions that has sub-agents or forks. One query."""
    names = [field.name for field in fields(Descendants)]
    with connection.cursor() as cursor:
        cursor.execute(_DESCENDANT_SUMS, {"project": project_id, "roots": list(roots)})
        return {root: Descendants(**dict(zip(names, sums, strict=True))) for root, *sums in cursor.fetchall()}


def session_tree(*, session: AgentSession) -> list[TreeNode]:
    """Return the session and its descendants in tree order, or an empty list if it has none. Three queries.

    Contains at most `MAX_SESSIONS` descendants and `MAX_DEPTH` levels; the totals include the rest.
    """
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
    sums = descendants_sum(project_id=session.project_id, roots=[session.pk, *ids])

    def nodes(session: AgentSession, depth: int) -> Iterator[TreeNode]:
        yield TreeNode(session=session, depth=depth, descendants=sums.get(session.pk))
        for child in children[session.pk]:
            yield from nodes(child, depth + 1)

    return list(nodes(session, 0))


def names_with_ancestors(*, session: AgentSession) -> set[str]:
    """Return the external ids of a session and of the sessions above it. One query per level."""
    found: set[str] = set()
    above: AgentSession | None = session
    while above is not None and above.external_id not in found:
        found.add(above.external_id)
        above = above.parent
    return found
