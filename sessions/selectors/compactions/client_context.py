"""Compactions by the recording client, and the beginning of a prompt after them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from compaction.edits import Edit
from compaction.triggers import requested
from compaction.view.components import COMPONENT_OPS
from sessions.models import Turn

#: Trigger of compactions that record what a client removed from its context, and strategy of their edits.
CLIENT = requested.CLIENT.name


def client_start(*, session_id: UUID, context_start: int, turn: int) -> int:
    """Return the first position of the client's context at a turn.

    `context_start` is that of the session. Turns marked after it are compactions over the API, which are
    recorded as edits.
    """
    if not context_start:
        return 0
    marked = Turn.objects.filter(session_id=session_id, index__lte=turn, client_compaction__isnull=False)
    rows = marked.filter(first_position__lte=context_start).order_by("-index")
    return rows.values_list("first_position", flat=True).first() or 0


def client_compactions(*, session_id: UUID, limit: int) -> Sequence[Turn]:
    """Return the newest turns before which the client compacted its own context."""
    marked = Turn.objects.filter(session_id=session_id, client_compaction__isnull=False)
    return list(marked.only("index", "at", "client_compaction").order_by("-index")[:limit])


def affects(edit: Edit, start: int) -> bool:
    """Return whether an edit changes a prompt that begins at position `start`."""
    return edit.op in COMPONENT_OPS or edit.end >= start


def edits_from(edits: Iterable[Edit], start: int) -> list[Edit]:
    """Return the edits that change a prompt that begins at position `start`."""
    return [edit for edit in edits if affects(edit, start)]
