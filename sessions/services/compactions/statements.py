"""The SQL that stores an applied compaction: its edits, its recap and the prompt snapshot, in one statement.

It is a part of two statements: `APPLY`, and that of a push which applies a prepared compaction
(`sessions/services/push/statements.py`). Their CTE `session` updates the session and returns its id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from compaction.edits import Edit as EditValue
from compaction.eviction import SHOWS_RECAP
from compaction.tools.actions import edited_tools
from compaction.view import View, in_force
from sessions.selectors.convert import edit_row
from sessions.store.edit_texts import Base
from sessions.store.prepared import Prepared
from sessions.store.prompt_bytes import PromptMessages
from sessions.store.prompt_snapshots import PromptOutline

EFFECTS: LiteralString = """
edit AS (
    INSERT INTO agent_sessions_edit (
        compaction_id, session_id, ordinal, strategy, op, position, "end", part, text, handle, reason,
        tokens_before, tokens_after, tool, bases, referenced_text, referenced_how)
    SELECT %(compaction)s, session.id, e.ordinal - 1, e.strategy, e.op, e.first, e.last, e.part, e.text,
           e.handle, e.reason, e.tokens_before, e.tokens_after, e.tool,
           (SELECT b.bases || b.id FROM agent_sessions_edit b WHERE b.id = e.base), '', ''
      FROM session CROSS JOIN
           unnest(%(strategy)s::text[], %(op)s::text[], %(position)s::int[], %(end)s::int[],
                  %(part)s::smallint[], %(text)b::bytea[], %(handle)s::text[], %(reason)s::text[],
                  %(tokens_before)s::int[], %(tokens_after)s::int[], %(tool)s::text[], %(base)s::bigint[])
           WITH ORDINALITY
           AS e (strategy, op, first, last, part, text, handle, reason, tokens_before, tokens_after, tool,
                 base, ordinal)
    RETURNING id, ordinal
), snapshot AS (
    INSERT INTO agent_sessions_promptsnapshot (session_id, compaction_number, data, text_edit, edits)
    SELECT session.id, session.compaction_count, %(snapshot)b,
           coalesce(%(text_edit)s::bigint, (
               SELECT edit.id FROM edit WHERE edit.ordinal = %(text_ordinal)s::int)),
           %(kept)s::bigint[] || coalesce(
               (SELECT array_agg(edit.id ORDER BY edit.ordinal) FROM edit
                 WHERE edit.ordinal = ANY(%(in_force)s::int[])), '{}')
      FROM session
        ON CONFLICT (session_id) DO UPDATE
       SET compaction_number = excluded.compaction_number, data = excluded.data,
           text_edit = excluded.text_edit, edits = excluded.edits
), recap AS (
    INSERT INTO agent_sessions_recap (
        compaction_id, version, author, model, lines, edit_ordinal, body, tokens, created_at)
    SELECT %(compaction)s, 1, %(recap_author)s, %(recap_model)s, %(recap_lines)b::bytea,
           %(recap_edit)s::int, %(recap_body)b::bytea, %(recap_tokens)s, now()
      FROM session WHERE %(recap_body)b::bytea IS NOT NULL
), obsolete AS (
    -- Keep the complete body of two recaps: the new one, for the next to continue, and the one before it,
    -- to return to if the new one is reverted. The text of the others remains.
    UPDATE agent_sessions_recap SET body = NULL
     WHERE %(recap_body)b::bytea IS NOT NULL AND id = (
         SELECT r.id
           FROM session
           JOIN agent_sessions_compaction c ON c.session_id = session.id AND c.state = 'done'
           JOIN agent_sessions_recap r ON r.compaction_id = c.id
          WHERE r.body IS NOT NULL AND r.lines IS NOT NULL
          ORDER BY c.number DESC, r.version DESC OFFSET 1 LIMIT 1)
), scan AS (
    -- The next pass looks for references to what was removed.
    INSERT INTO agent_sessions_referencescan (
        session_id, position, compaction, reverted, pause_seconds, attempts)
    SELECT session.id, 0, 0, 0, 0, 0 FROM session
        ON CONFLICT (session_id) DO UPDATE
       SET attempts = agent_sessions_referencescan.attempts + 1, lease_until = NULL, pause_seconds = 0
)
"""

_EDIT_COLUMNS = (
    *("strategy", "op", "position", "end", "part", "text", "handle", "reason", "tokens_before"),
    *("tokens_after", "tool"),
)

EFFECTS_TYPES: Mapping[str, str] = {
    "compaction": "uuid",
    **dict.fromkeys(("strategy", "op", "handle", "reason", "tool"), "text[]"),
    **dict.fromkeys(("position", "end", "tokens_before", "tokens_after", "in_force"), "int4[]"),
    "part": "int2[]",
    "text": "bytea[]",
    **dict.fromkeys(("base", "kept"), "int8[]"),
    "text_edit": "int8",
    **dict.fromkeys(("snapshot", "recap_lines", "recap_body"), "bytea"),
    **dict.fromkeys(("recap_author", "recap_model"), "text"),
    **dict.fromkeys(("recap_edit", "recap_tokens", "text_ordinal"), "int4"),
}

_APPLY: LiteralString = (
    """
WITH session AS (
    UPDATE agent_sessions_agentsession SET
        compaction_count = compaction_count + 1,
        edits_revision = edits_revision + 1,
        fired_tokens = %(fired_tokens)s,
        fired_turn = turn_count,
        plan_turn = NULL,
        snapshot_end = message_count,
        shown_components = %(shown)s,
        needs_repair = %(needs_repair)s,
        open_calls = %(open_calls)s
     WHERE id = %(session)s
    RETURNING id, compaction_count
), """
    + EFFECTS
    + "SELECT FROM session"
)

#: Stores a compaction whose row exists. The caller has locked the session.
APPLY = Prepared(
    "compaction",
    _APPLY,
    {
        **EFFECTS_TYPES,
        "session": "uuid",
        "fired_tokens": "int4",
        "shown": "jsonb",
        "needs_repair": "bool",
        "open_calls": "text[]",
    },
)


def edit_parameters(
    edits: Sequence[EditValue],
    view: View,
    earlier: Sequence[tuple[int, EditValue]],
    messages: PromptMessages,
    *,
    base: Base | None,
) -> dict[str, Any]:
    """Return the parameters of `EFFECTS` for the edits of a plan, and for the prompt snapshot after them.

    `view` is the view before them, `earlier` are the edits in force before them with their keys. `messages`
    are those of the prompt after them. `base` is the text of the newest recap.
    """
    tools = edited_tools(edits, view.transcript)
    bases = [base if edit.strategy in SHOWS_RECAP and edit.text else None for edit in edits]
    rows = [edit_row(*row) for row in zip(edits, tools, bases, strict=True)]
    effective = {id(edit) for edit in in_force([*(edit for _, edit in earlier), *edits])}
    kept = {key: edit for key, edit in earlier if id(edit) in effective}
    added = {ordinal: edit for ordinal, edit in enumerate(edits) if id(edit) in effective}
    text, key, ordinal = _longest_text(kept, added)
    return {
        **{name: [row[name] for row in rows] for name in _EDIT_COLUMNS},
        "base": [each.key if each is not None else None for each in bases],
        "kept": list(kept),
        "in_force": list(added),
        "snapshot": PromptOutline.of(messages).pack(text),
        "text_edit": key,
        "text_ordinal": ordinal,
    }


def _longest_text(
    kept: Mapping[int, EditValue], added: Mapping[int, EditValue]
) -> tuple[str | None, int | None, int | None]:
    """Return the text with which the snapshot is compressed, and the key or the ordinal of its edit.

    The longest text is the recap, or the marker of an offloaded output.
    """
    key = max(kept, key=lambda each: len(kept[each].text), default=None)
    ordinal = max(added, key=lambda each: len(added[each].text), default=None)
    old = kept[key].text if key is not None else None
    new = added[ordinal].text if ordinal is not None else None
    if new is None or (old is not None and len(old) >= len(new)):
        return old, key, None
    return new, None, ordinal
