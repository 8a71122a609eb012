"""The SQL statements of a push. See `turns.py` for why they are SQL."""

from __future__ import annotations

from typing import LiteralString

from accounts.selectors import GIVEN_KEY_IS_VALID
from sessions.services.compactions.statements import EFFECTS, EFFECTS_TYPES
from sessions.store.prepared import Prepared

_STATE: LiteralString = f"""
SELECT s.xmin::text AS version, s.id, s.project_id, s.format, s.model, s.agent, s.turn_count, s.message_count,
       s.push_position, s.context_components, s.shown_components, s.open_calls, s.needs_repair,
       s.preamble_version, s.preamble_hash, s.calibration, s.budget_tokens, s.context_window, s.policy,
       s.fired_tokens, s.fired_turn, s.plan_turn, s.omitted_count,
       t.body_hash, t.answer,
       -- Reported calls without messages: telemetry came before all pushes, or is ahead of them.
       EXISTS (SELECT FROM agent_sessions_turn r
                WHERE r.session_id = s.id AND (r.index < 8 OR r.index >= s.turn_count - 8)
                  AND r.message_count = 0 AND r.request_id IS NOT NULL) AS has_reports
  FROM agent_sessions_agentsession s
  LEFT JOIN agent_sessions_turn t ON t.session_id = s.id AND t.idempotency_key = %(idempotency_key)s
 WHERE s.id = %(session)s AND s.project_id = %(project)s
   AND {GIVEN_KEY_IS_VALID}
"""  # noqa: S608  a constant is inserted

#: Returns the session and the turn stored with this idempotency key, or no row if the API key is invalid.
#: Without a key, its validity is not checked (see `Target`).
READ: LiteralString = _STATE
LOCK: LiteralString = _STATE + "FOR UPDATE OF s"

#: One statement, all or nothing: writes if the session's row is still the version that the turn was computed
#: from (`xmin` is the transaction that wrote it), the API key is valid and the idempotency key is new, as
#: well as the ids of the call, unless the caller has checked them. Otherwise it returns no row. Messages and
#: blobs are passed as arrays, so one statement writes any number.
_SESSION: LiteralString = """
WITH session AS (
    UPDATE agent_sessions_agentsession s SET
        turn_count = turn_count + 1,
        message_count = message_count + %(count)s,
        push_position = %(push_position)s,
        -- Changed at most once per second: when an indexed column changes, Postgres updates every index
        -- of the row, which is most of what a push writes.
        -- A time far in the future was written before the clock was set back, or comes from a log.
        last_active_at = CASE WHEN last_active_at BETWEEN now() - interval '1 second'
                                                      AND now() + interval '1 minute'
                              THEN last_active_at ELSE now() END,
        started_at = least(started_at, %(at)s),
        format = %(format)s,
        model = %(session_model)s,
        context_window = %(context_window)s,
        context_components = %(context)s,
        shown_components = %(shown)s,
        open_calls = %(open_calls)s,
        needs_repair = %(needs_repair)s,
        calibration = %(calibration)s,
        preamble_version = %(preamble)s,
        preamble_hash = %(preamble_hash)s,
        last_prompt_tokens = %(size)s,
        peak_prompt_tokens = greatest(peak_prompt_tokens, %(size)s),
        uncached_tokens = uncached_tokens + coalesce(%(uncached)s, 0),
        cache_read_tokens = cache_read_tokens + coalesce(%(cache_read)s, 0),
        cache_write_tokens = cache_write_tokens + coalesce(%(cache_write)s, 0),
        output_tokens = output_tokens + coalesce(%(output)s, 0),
        cost_microusd = cost_microusd + coalesce(%(cost)s, 0),
        unpriced_turns = unpriced_turns + %(unpriced)s,
"""

_PLAN_TURN: LiteralString = """\
        plan_turn = %(plan_turn)s
"""

_CONDITIONS: LiteralString = f"""\
     WHERE s.id = %(session)s AND s.project_id = %(project)s AND s.xmin::text = %(version)s
       AND {GIVEN_KEY_IS_VALID}
       AND (%(idempotency_key)s::text IS NULL OR NOT EXISTS (
           SELECT FROM agent_sessions_turn t
            WHERE t.session_id = s.id AND t.idempotency_key = %(idempotency_key)s))
       AND (%(new_request_id)s::text IS NULL OR NOT EXISTS (
           SELECT FROM agent_sessions_turn t WHERE t.request_id = %(new_request_id)s AND t.billed))
       AND (%(new_response_id)s::text IS NULL OR NOT EXISTS (
           SELECT FROM agent_sessions_turn t WHERE t.response_id = %(new_response_id)s AND t.billed))
"""  # noqa: S608  a constant is inserted

_TURN: LiteralString = """\
    RETURNING s.id, s.compaction_count
), turn AS (
    INSERT INTO agent_sessions_turn (
        session_id, index, at, model, first_position, message_count, preamble_version, idempotency_key,
        body_hash, prompt_estimate, prompt_reported, prompt_served, component_tokens, uncached_tokens,
        cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, billed, output_spike,
        first_token_ms, duration_ms, calibration_factor, calibration_overhead, budget, answer,
        source, request_id, response_id)
    SELECT
        session.id, %(turn)s, coalesce(%(at)s, now()), %(model)s, %(first)s, %(count)s, %(preamble)s,
        %(idempotency_key)s, %(body_hash)s, %(estimate)s, %(reported)s, %(served)s, %(components)b,
        %(uncached)s, %(cache_read)s, %(cache_write)s, %(output)s, %(cost)s, true, %(spike)s,
        %(first_token_ms)s, %(duration_ms)s, %(factor)s, %(overhead)s, %(budget)s, %(answer)b,
        %(source)s, %(request_id)s, %(response_id)s
      FROM session
"""

_MESSAGES: LiteralString = """), message AS (
    INSERT INTO agent_sessions_message (
        session_id, position, turn_index, role, tokens, flags, tool_name, body, content_hash)
    SELECT session.id, m.position, %(turn)s, m.role, m.tokens, m.flags, m.tool_name, m.body, m.content_hash
      FROM session CROSS JOIN
           unnest(%(positions)s::int[], %(roles)s::text[], %(tokens)s::int[], %(flags)s::smallint[],
                  %(tool_names)s::text[], %(bodies)b::bytea[], %(content_hashes)b::bytea[])
           AS m (position, role, tokens, flags, tool_name, body, content_hash)
"""

#: Some of them have their bodies in blobs.
_LARGE_MESSAGES: LiteralString = """), blob AS (
    INSERT INTO agent_sessions_blob (id, project_id, sha256, size, data)
    SELECT b.id, %(project)s, b.sha256, b.size, b.data
      FROM session CROSS JOIN
           unnest(%(blob_ids)s::uuid[], %(blob_hashes)b::bytea[], %(blob_sizes)s::int[],
                  %(blob_data)b::bytea[]) AS b (id, sha256, size, data)
     ORDER BY b.sha256
        ON CONFLICT (project_id, sha256) DO UPDATE SET size = excluded.size
    RETURNING id, sha256
), message AS (
    INSERT INTO agent_sessions_message (
        session_id, position, turn_index, role, tokens, flags, tool_name, body, blob_id,
        content_hash)
    SELECT session.id, m.position, %(turn)s, m.role, m.tokens, m.flags, m.tool_name, m.body, blob.id,
           m.content_hash
      FROM session CROSS JOIN
           unnest(%(positions)s::int[], %(roles)s::text[], %(tokens)s::int[], %(flags)s::smallint[],
                  %(tool_names)s::text[], %(bodies)b::bytea[], %(in_blob)b::bytea[],
                  %(content_hashes)b::bytea[])
           AS m (position, role, tokens, flags, tool_name, body, sha256, content_hash)
      LEFT JOIN blob ON blob.sha256 = m.sha256
"""

_END: LiteralString = """
SELECT pg_current_xact_id()::xid::text FROM session
"""


def _write(
    *,
    changes: LiteralString = _PLAN_TURN,
    conditions: LiteralString = "",
    messages: LiteralString = _LARGE_MESSAGES,
    effects: LiteralString = ")",
) -> LiteralString:
    """Return a statement that stores a turn.

    `changes` are further columns of the session, `conditions` further conditions, and `effects` the end of
    the last CTE with those that follow it.
    """
    return _SESSION + changes + _CONDITIONS + conditions + _TURN + messages + effects + _END


_TYPES = {
    **dict.fromkeys(("session", "project", "key"), "uuid"),
    **dict.fromkeys(("version", "format", "model", "session_model", "idempotency_key"), "text"),
    **dict.fromkeys(("source", "request_id", "response_id", "new_request_id", "new_response_id"), "text"),
    **dict.fromkeys(("answer", "body_hash", "components", "preamble_hash"), "bytea"),
    **dict.fromkeys(("turn", "first", "count", "preamble", "estimate", "reported", "served", "size"), "int4"),
    **dict.fromkeys(("uncached", "cache_read", "cache_write", "output"), "int4"),
    **dict.fromkeys(("overhead", "budget", "spike", "first_token_ms", "duration_ms"), "int4"),
    **dict.fromkeys(("unpriced", "plan_turn", "push_position", "context_window"), "int4"),
    **dict.fromkeys(("context", "shown", "calibration"), "jsonb"),
    **dict.fromkeys(("positions", "tokens", "blob_sizes"), "int4[]"),
    **dict.fromkeys(("roles", "tool_names", "open_calls"), "text[]"),
    **dict.fromkeys(("bodies", "in_blob", "content_hashes", "blob_hashes", "blob_data"), "bytea[]"),
    "at": "timestamptz",
    "cost": "int8",
    "factor": "float8",
    "needs_repair": "bool",
    "flags": "int2[]",
    "blob_ids": "uuid[]",
}

#: Stores a turn whose messages have no blobs, which is most of them: Postgres takes a tenth less time.
WRITE = Prepared("push", _write(messages=_MESSAGES), _TYPES)
WRITE_LARGE = Prepared("push_large", _write(), _TYPES)

_NO_WEBHOOK: LiteralString = """NOT EXISTS (
           SELECT FROM agent_sessions_webhook w WHERE w.project_id = s.project_id AND w.is_active)
"""

#: Stores a turn with a spike like `WRITE` if no webhook may wait for it.
WRITE_SPIKE = Prepared("push_spike", _write(conditions="       AND " + _NO_WEBHOOK), _TYPES)

_COMPACTED: LiteralString = """\
        plan_turn = NULL,
        compaction_count = compaction_count + 1,
        edits_revision = edits_revision + 1,
        snapshot_end = %(snapshot_end)s,
        fired_tokens = %(fired_tokens)s,
        fired_turn = %(turn)s + 1
"""

_IS_PREPARED: LiteralString = """\
       AND %(memory)s::int IS NOT DISTINCT FROM (
           SELECT max(r.number) FROM agent_sessions_memoryrevision r WHERE r.session_id = s.id)
       AND %(number)s = 1 + coalesce((
           SELECT max(c.number) FROM agent_sessions_compaction c WHERE c.session_id = s.id), 0)
       AND NOT EXISTS (
           SELECT FROM agent_sessions_compaction c
            WHERE c.session_id = s.id AND c.state IN ('pending', 'running'))
"""

_COMPACTION: LiteralString = """), compaction AS (
    INSERT INTO agent_sessions_compaction (
        id, session_id, number, state, trigger, reason, instructions, turn_index, first_turn,
        snapshot_position, policy, tokens_before, tokens_after, facts, details, cost_microusd, awaits_upgrade,
        attempts, created_at, dispatched_at, started_at, finished_at)
    SELECT %(compaction)s, session.id, %(number)s, 'done', 'hard', '', '', %(turn)s, %(turn)s,
           %(message_count)s, %(policy)b, %(size_before)s, %(size_after)s, %(facts)s, %(details)b, 0, false,
           0, now(), now(), now(), now()
      FROM session
), """

#: Stores a turn, and the prepared compaction that it triggers, under the conditions of `WRITE`. In addition,
#: the working memory and the newest compaction must be those of its preparation, no compaction may be in
#: progress, and no webhook may wait for it, unless `reports` says that the caller reports it.
WRITE_COMPACTED = Prepared(
    "push_compacted",
    _write(
        changes=_COMPACTED,
        conditions=_IS_PREPARED + "       AND (%(reports)s OR " + _NO_WEBHOOK + ")\n",
        effects=_COMPACTION + EFFECTS,
    ),
    {
        **_TYPES,
        **EFFECTS_TYPES,
        **dict.fromkeys(("snapshot_end", "fired_tokens", "memory", "number", "message_count"), "int4"),
        **dict.fromkeys(("size_before", "size_after"), "int4"),
        **dict.fromkeys(("policy", "details"), "bytea"),
        "facts": "jsonb",
        "reports": "bool",
    },
)

_IS_KNOWN_HISTORY: LiteralString = """\
       AND EXISTS (
           SELECT FROM agent_sessions_clienthistory h
            WHERE h.session_id = s.id AND h.count = %(known_count)s AND h.digest = %(known_digest)s)
       AND NOT EXISTS (
           SELECT FROM agent_sessions_clienthistory h WHERE h.root_id = s.id AND h.session_id <> s.id)
"""

_HISTORY: LiteralString = """), history AS (
    UPDATE agent_sessions_clienthistory h SET
        count = %(history_count)s, digest = %(digest)s, preamble_hash = %(history_preamble)s,
        prefix_count = %(prefix_count)s, prefix_bytes = %(prefix_bytes)s, prefix_hash = %(prefix_hash)s,
        prefix_digest = %(prefix_digest)s, caller = NULL, updated_at = now()
      FROM session WHERE h.session_id = session.id
), served AS (
    INSERT INTO agent_sessions_servedprompt (session_id, turn, edits_revision)
    SELECT session.id, %(turn)s, %(edits_revision)s FROM session
        ON CONFLICT (session_id) DO UPDATE
       SET turn = excluded.turn, edits_revision = excluded.edits_revision
)"""

#: Stores a turn like `WRITE` if the client's history has this many messages and this digest and no fork. Also
#: stores the history with the turn, and that the next prompt is served: the response contains it.
WRITE_HISTORY = Prepared(
    "push_history",
    _write(conditions=_IS_KNOWN_HISTORY, effects=_HISTORY),
    {
        **_TYPES,
        **dict.fromkeys(("known_count", "history_count", "prefix_count", "prefix_bytes"), "int4"),
        **dict.fromkeys(("known_digest", "digest", "history_preamble", "prefix_hash"), "bytea"),
        "prefix_digest": "bytea",
        "edits_revision": "int4",
    },
)
