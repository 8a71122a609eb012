"""Find which compactions shortened or removed messages, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from psycopg.types.numeric import Int4

from sessions.selectors.compactions.client_context import CLIENT
from sessions.selectors.compactions.omissions import LAST_TURN
from sessions.store.postgres import rows_fetch

#: The reason of the edits for messages that a client removed itself.
REMOVED_BY_CLIENT = "removed by the client from its context"

#: A turn after all others, and a compaction after all others.
_LATEST = 2**31 - 1
#: Maximum edits of a message. One edits each of its parts at most once.
_MOST = 50

#: `oldest` is the first compaction that could change a message: one changes only those before its
#: `snapshot_position`. `removing` is the first that removed it. So the edits that are read are those from the
#: push of a message until its removal, and the turns those until the client's next compaction.
_CHANGES: LiteralString = f"""
WITH place AS (
    SELECT * FROM unnest(%(sessions)s::uuid[], %(positions)s::int[]) AS place (session_id, position)
)
SELECT place.session_id, place.position, edit.*
  FROM place
 CROSS JOIN LATERAL (
       SELECT c.number
         FROM agent_sessions_compaction c
        WHERE c.session_id = place.session_id AND c.snapshot_position > place.position
        ORDER BY c.number LIMIT 1
       ) oldest
  LEFT JOIN LATERAL (
       SELECT c.number
         FROM agent_sessions_compaction c
         JOIN agent_sessions_edit e
           ON e.compaction_id = c.id AND e.op = 'evict'
          AND e.position <= place.position AND e."end" >= place.position
        WHERE c.session_id = place.session_id AND c.number >= oldest.number AND c.first_turn <= %(turn)s
          AND (c.state = 'done' OR c.state = 'reverted' AND c.reverted_turn > %(turn)s)
        ORDER BY c.number LIMIT 1
       ) removing ON true
 CROSS JOIN LATERAL (
       SELECT e.op = 'evict', c.number, c.first_turn AS turn, e.strategy, e.reason, e.ordinal
         FROM agent_sessions_compaction c
         JOIN agent_sessions_edit e
           ON e.compaction_id = c.id AND e.position <= place.position AND e."end" >= place.position
          AND e.op = CASE WHEN c.number = removing.number THEN 'evict' ELSE 'replace' END
        WHERE c.session_id = place.session_id AND c.number >= oldest.number
          AND c.number <= coalesce(removing.number, %(latest)s) AND c.first_turn <= %(turn)s
          AND (c.state = 'done' OR c.state = 'reverted' AND c.reverted_turn > %(turn)s)
        ORDER BY c.number, e.ordinal LIMIT %(most)s
       ) edit
UNION ALL
SELECT place.session_id, place.position, true, NULL, mark.index - 1, %(client)s, %(reason)s, 0
  FROM place
  JOIN agent_sessions_agentsession s ON s.id = place.session_id AND place.position < s.context_start
  JOIN agent_sessions_message m USING (session_id, position)
 CROSS JOIN LATERAL (
       SELECT t.index
         FROM agent_sessions_turn t
        WHERE t.session_id = place.session_id AND t.index > m.turn_index AND t.index - 1 <= %(turn)s
          AND t.client_compaction IS NOT NULL AND t.first_position > place.position
          AND t.first_position <= s.context_start
        ORDER BY t.index LIMIT 1
       ) mark
UNION ALL
SELECT place.session_id, place.position, true, NULL, omitted.turn, %(client)s, %(reason)s, 0
  FROM place
  JOIN agent_sessions_message m USING (session_id, position)
{LAST_TURN}
 WHERE m.omitted_from IS NOT NULL AND omitted.turn <= %(turn)s
 ORDER BY turn, number, ordinal
"""  # noqa: S608  a constant is inserted


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageChange:
    """What a compaction did to a message: it removed it from the prompts after `turn`, or shortened it.

    `compaction` is None if the client compacted its own context, because its log does not number them, or
    left out a message that it had sent only once.
    """

    is_removal: bool
    compaction: int | None
    turn: int
    strategy: str
    reason: str


def message_changes(
    places: Sequence[tuple[UUID, int]], *, turn: int = _LATEST
) -> Mapping[tuple[UUID, int], Sequence[MessageChange]]:
    """Return what changed messages in the prompt after `turn`, oldest first, up to their removal. One query.

    `places` are sessions and positions. Compactions that were reverted by then are left out.
    """
    found: defaultdict[tuple[UUID, int], list[MessageChange]] = defaultdict(list)
    if not places:
        return found
    parameters = {
        "sessions": [session for session, _ in places],
        "positions": [Int4(position) for _, position in places],
        "turn": Int4(turn),
        "latest": Int4(_LATEST),
        "most": Int4(_MOST),
        "client": CLIENT,
        "reason": REMOVED_BY_CLIENT,
    }
    for session, position, is_removal, compaction, changed_after, strategy, reason, _ in rows_fetch(
        _CHANGES, parameters
    ):
        changes = found[session, position]
        change = MessageChange(
            is_removal=is_removal,
            compaction=compaction,
            turn=changed_after,
            strategy=strategy,
            reason=reason,
        )
        # One compaction may shorten several parts of a message for the same reason.
        if change not in changes and not (changes and changes[-1].is_removal):
            changes.append(change)
    return found
