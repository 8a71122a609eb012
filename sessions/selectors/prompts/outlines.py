"""Read prompt snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from sessions.store.edit_texts import TEXTS, Packed, text_unpack
from sessions.store.postgres import rows_fetch
from sessions.store.prompt_snapshots import PromptOutline

_SNAPSHOT: LiteralString = f"""
SELECT s.data, {TEXTS}
  FROM agent_sessions_promptsnapshot s
  LEFT JOIN agent_sessions_edit e ON e.id = s.text_edit
 WHERE s.session_id = %s
"""  # noqa: S608  a constant is inserted


def snapshot_read(session_id: UUID) -> PromptOutline | None:
    """Return the prompt snapshot of a session, or None."""
    rows = rows_fetch(_SNAPSHOT, [session_id])
    return outline_unpack(*rows[0]) if rows else None


def outline_unpack(data: Packed | None, texts: Sequence[Packed] | None) -> PromptOutline:
    """Return a stored prompt snapshot, or an empty one. `texts` are the stored texts of its edit, if any."""
    if data is None:
        return PromptOutline()
    return PromptOutline.unpack(data, text_unpack(texts).decode() if texts is not None else None)
