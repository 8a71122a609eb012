"""Fetch a prompt on the event loop of the web server, in one statement.

Usually this process has served the session's previous prompt and no edit has changed since: the prompt is the
cached one, followed by the messages of the pushes in between. In every other case, the endpoint reads it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, LiteralString
from uuid import UUID

import orjson

from sessions.selectors.prompts.cache import CachedPrompt, prompt_cache
from sessions.selectors.prompts.state import SESSION, SESSION_COLUMNS, PromptState
from sessions.selectors.prompts.stored import Rows, messages_extend, messages_keep
from sessions.services.prompts.served import replace_served
from sessions.store import bodies
from sessions.store.loop_connections import LoopConnections
from sessions.store.prepared import Prepared
from sessions.store.prompt_bytes import PromptMessages
from sessions.store.prompt_snapshots import PromptOutline

#: Larger prompts are left to a thread: assembling them would delay the other requests (bytes).
LARGEST = 2_000_000

#: Messages since the cached prompt, and tokens of each. More are left to a thread.
_MOST_MESSAGES, _MOST_TOKENS = 64, 32_768

#: Finds the session if the cached prompt is the start of its current one, and records that it is served, as
#: in `served`. Returns no row if a compaction or revert in progress may change the prompt. The
#: messages begin with the last cached one. There are none if the session's row has not changed.
_FETCH: LiteralString = f"""
WITH found AS (
    SELECT {SESSION_COLUMNS}
      {SESSION}
     WHERE s.id = %(session)s AND s.project_id = %(project)s
       AND s.edits_revision = %(revision)s AND s.compaction_count = %(compactions)s
       AND s.snapshot_end = %(snapshot_end)s AND s.omitted_count = %(omitted)s
       AND s.preamble_version = %(preamble)s
       AND s.message_count BETWEEN %(end)s AND %(end)s + {_MOST_MESSAGES}
       AND (v.turn = s.turn_count - 1 AND v.edits_revision <> s.edits_revision) IS NOT TRUE
), is_new AS (
    SELECT (served_turn, served_revision) IS DISTINCT FROM (turn_count - 1, edits_revision) AS value
      FROM found
), unchanged AS (
    SELECT id FROM agent_sessions_agentsession
     WHERE id = %(session)s AND edits_revision = %(revision)s AND omitted_count = %(omitted)s
       AND (SELECT value FROM is_new)
       FOR KEY SHARE SKIP LOCKED
), recorded AS (
    INSERT INTO agent_sessions_servedprompt (session_id, turn, edits_revision)
    SELECT found.id, turn_count - 1, edits_revision
      FROM found JOIN unchanged ON unchanged.id = found.id, set_config('synchronous_commit', 'off', true)
    {replace_served("(SELECT served_turn FROM found)")}
    RETURNING session_id
)
SELECT row_to_json(found),
       (SELECT json_agg(json_build_array(m.position, m.role, m.tokens,
                                         CASE WHEN m.tokens <= {_MOST_TOKENS}
                                              THEN encode(coalesce(m.body, b.data), 'hex') END))
          FROM agent_sessions_message m
          LEFT JOIN agent_sessions_blob b ON b.id = m.blob_id
         WHERE m.session_id = found.id AND m.position >= %(end)s - 1 AND m.position < found.message_count
           AND (found.version, found.server_start) <> (%(row)s, %(server_start)s))
  FROM found
 WHERE NOT (SELECT value FROM is_new) OR EXISTS (SELECT FROM recorded)
"""  # noqa: S608  constants are inserted

_STATEMENT = Prepared(
    "prompt_fetch",
    _FETCH,
    {
        **dict.fromkeys(("key", "session", "project"), "uuid"),
        **dict.fromkeys(("revision", "compactions", "snapshot_end", "omitted", "end"), "int4"),
        **dict.fromkeys(("row", "server_start"), "text"),
        "preamble": "int2",
    },
)


async def prompt_fetch_direct(
    connections: LoopConnections, *, key_id: UUID, project_id: UUID, session_id: UUID
) -> tuple[PromptState, PromptMessages] | None:
    """Return the current prompt of a session and record that it was served, or None if it must be read.

    Raises `NotConnected` and psycopg's errors.
    """
    known = prompt_cache.get(session_id)
    if known is None or len(known.messages.joined.data) > LARGEST:
        return None
    row, server_start = known.row
    parameters = {
        "key": key_id,
        "session": session_id,
        "project": project_id,
        "revision": known.version.edits_revision,
        "compactions": known.version.compaction_count,
        "snapshot_end": known.version.snapshot_end,
        "omitted": known.version.omitted_count,
        "preamble": known.preamble.version,
        "end": known.end,
        "row": row,
        "server_start": server_start,
    }
    found = await connections.fetch_row(_STATEMENT, _STATEMENT.encode(parameters))
    if found is None or found[0] is None:
        return None
    state = _state(orjson.loads(found[0]), session_id, known)
    if state.row == known.row:
        return state, known.messages
    messages = _extended(known, orjson.loads(found[1] or b"[]"), state.message_count)
    if messages is None:
        return None
    messages_keep(state, messages)
    return state, messages


def _state(values: dict[str, Any], session_id: UUID, known: CachedPrompt) -> PromptState:
    return PromptState.from_row(
        SimpleNamespace(**values | {"id": session_id}),
        system=known.preamble.system,
        tools=known.preamble.tools,
        snapshot=PromptOutline,  # is part of the cached prompt
    )


def _extended(known: CachedPrompt, stored: list[Any], end: int) -> PromptMessages | None:
    """Return the cached prompt with the messages that follow it, or None if they cannot be read here."""
    if any(data is None for *_, data in stored):  # too large, or in object storage
        return None
    rows: Rows = {
        position: (role, tokens, bodies.unpack(bytes.fromhex(data)))
        for position, role, tokens, data in stored
    }
    return messages_extend(known, rows, end)
