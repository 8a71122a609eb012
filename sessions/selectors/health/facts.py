"""Read what the health of sessions depends on, besides their turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, LiteralString, NamedTuple
from uuid import UUID

from compaction.referenced import How
from sessions.selectors.compactions.client_context import CLIENT
from sessions.selectors.savings import APPLIED
from sessions.store.postgres import rows_fetch

#: The newest tool outputs that are checked for errors.
NEWEST_OUTPUTS: Literal[20] = 20

_FACTS: LiteralString = f"""
SELECT s.id, coalesce(c.numbers, '{{}}'), coalesce(c.turns, '{{}}'), c.mid_task, e.lost, o.outputs,
       o.errors, m.newest
  FROM unnest(%(sessions)s::uuid[]) AS s (id)
 CROSS JOIN LATERAL (
       SELECT array_agg(c.number ORDER BY c.number) AS numbers,
              array_agg(c.turn_index ORDER BY c.number) AS turns,
              count(DISTINCT m.position) AS mid_task
         FROM agent_sessions_compaction c
         LEFT JOIN agent_sessions_message m
           ON m.session_id = c.session_id AND m.position = c.snapshot_position - 1
          AND m.role = 'assistant' AND m.tool_name <> ''
        WHERE c.session_id = s.id AND {APPLIED}) c
 CROSS JOIN LATERAL (
       SELECT count(*) AS lost
         FROM agent_sessions_edit e
         JOIN agent_sessions_compaction c ON c.id = e.compaction_id
        WHERE e.session_id = s.id AND e.referenced_turn IS NOT NULL AND e.referenced_how <> '{How.EXPANDED}'
          AND e.strategy <> '{CLIENT}' AND c.state IN ('done', 'reverted')) e
 CROSS JOIN LATERAL (
       SELECT count(*) AS outputs, count(*) FILTER (WHERE newest.error) AS errors
         FROM (SELECT each.error
                 FROM (SELECT positions, errors
                         FROM agent_sessions_tooloutputs
                        WHERE session_id = s.id
                        ORDER BY number DESC
                        LIMIT 2) block
                CROSS JOIN LATERAL unnest(block.positions, block.errors) AS each (position, error)
                ORDER BY each.position DESC
                LIMIT {NEWEST_OUTPUTS}) newest) o
 CROSS JOIN LATERAL (
       SELECT max(number) AS newest FROM agent_sessions_memoryrevision WHERE session_id = s.id) m
"""  # noqa: S608  constants are inserted


class HealthFacts(NamedTuple):
    """Facts about one session.

    `numbers` and `turns` are those of contextapp's applied compactions, in order. `mid_task` is the number of
    compactions while the newest message was a call without its result. `lost` is the number of edits that
    removed content that the model missed later; expanded content does not count. `errors` is the number of
    errors among the newest `outputs` tool outputs. `revision` is the number of the newest revision of the
    working memory.
    """

    numbers: Sequence[int]
    turns: Sequence[int]
    mid_task: int
    lost: int
    outputs: int
    errors: int
    revision: int | None


def health_facts(sessions: Iterable[UUID]) -> dict[UUID, HealthFacts]:
    """Return the facts about sessions by id."""
    rows = rows_fetch(_FACTS, {"sessions": list(sessions)})
    return {id: HealthFacts._make(facts) for id, *facts in rows}
