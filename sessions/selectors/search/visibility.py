"""Determine whether the current prompts of sessions still show messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import UUID

from compaction.edits import Op
from sessions.models import AgentSession, Edit, Message, PromptSnapshot
from sessions.selectors.compactions.message_changes import MessageChange, message_changes
from sessions.selectors.search.texts import Place


class Visibility(StrEnum):
    """How the current prompt shows a message."""

    SHOWN = "shown"
    SHORTENED = "shortened"
    EVICTED = "evicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How a prompt shows a message, and the changes that led to it, oldest first.

    `handles` retrieve the hidden content: the handle of each part, and of the whole message as None.
    """

    visibility: Visibility = Visibility.SHOWN
    handles: Mapping[int | None, str] = field(default_factory=dict)
    changes: Sequence[MessageChange] = ()

    def handle_of(self, part: int | None) -> str | None:
        """Return the handle that retrieves a part, None if there is none because the prompt shows it.

        Without a part, returns any handle that retrieves content of the message.
        """
        whole = self.handles.get(None)
        return whole or (next(iter(self.handles.values()), None) if part is None else self.handles.get(part))


def visibility_of(sessions: Mapping[UUID, AgentSession], places: Sequence[Place]) -> Mapping[Place, Shown]:
    """Return how the current prompts show these messages. Four queries."""
    edits = _edits([session.pk for session in sessions.values() if session.compaction_count])
    left_out = _left_out(sessions, places)
    shown = {place: _shown(place[1], edits[place[0]], is_left_out=place in left_out) for place in places}
    hidden = [place for place, each in shown.items() if each.visibility is not Visibility.SHOWN]
    changes = message_changes(hidden)
    return shown | {place: replace(shown[place], changes=changes.get(place, ())) for place in hidden}


def _edits(ids: Sequence[UUID]) -> defaultdict[UUID, list[Edit]]:
    by_session: defaultdict[UUID, list[Edit]] = defaultdict(list)
    if not ids:
        return by_session
    snapshots = PromptSnapshot.objects.filter(session_id__in=ids).values_list("edits", flat=True)
    keys = [key for edits in snapshots for key in edits]
    rows = Edit.objects.filter(pk__in=keys, op__in=[Op.EVICT, Op.REPLACE])
    for edit in rows.only("session_id", "op", "position", "end", "part", "handle"):
        by_session[edit.session_id].append(edit)
    return by_session


def _left_out(sessions: Mapping[UUID, AgentSession], places: Sequence[Place]) -> set[Place]:
    """Return the places of the messages that the clients no longer send."""
    ids, positions = {session for session, _ in places}, {position for _, position in places}
    omitted = Message.objects.filter(session__in=ids, position__in=positions, omitted_from__isnull=False)
    before = {place for place in places if place[1] < sessions[place[0]].context_start}
    return before.union(omitted.values_list("session_id", "position"))


def _shown(position: int, edits: Sequence[Edit], *, is_left_out: bool) -> Shown:
    covering = [edit for edit in edits if edit.position <= position <= edit.end]
    evictions = [edit for edit in covering if edit.op == Op.EVICT]
    handles: dict[int | None, str] = {}
    for edit in (*evictions, *covering):
        if edit.handle:
            handles.setdefault(edit.part, edit.handle)
    if evictions or is_left_out:
        return Shown(visibility=Visibility.EVICTED, handles=handles)
    return Shown(visibility=Visibility.SHORTENED if covering else Visibility.SHOWN, handles=handles)
