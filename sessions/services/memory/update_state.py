"""Load and store the state of a session's automatic memory updates."""

from __future__ import annotations

from compaction.adapters.tiktoken_counter import counter
from compaction.memory.origins import Notes, Via
from compaction.memory.updates import UpdaterState, update_notes
from sessions.models import AgentSession, MemoryExtractionState, MemoryRevision, MemoryUpdateState
from sessions.selectors.memory.revisions import memory_notes
from sessions.selectors.transcripts.turns import messages_by_turn

#: Maximum number of revisions that are checked for removed items.
_MAX_REVISIONS = 200


def update_state_load(session: AgentSession) -> tuple[int, UpdaterState]:
    """Return the next turn to read, and the state after the previous turns."""
    row = MemoryUpdateState.objects.filter(session=session).first()
    if row is None:
        return 0, UpdaterState()
    state = UpdaterState.from_json(row.data)
    if row.turn and not state.turn:
        state = _state_of_fork(session, row.turn)
    return row.turn, state


def update_state_turn(session: AgentSession) -> int:
    """Return the next turn that automatic updates will read."""
    return MemoryUpdateState.objects.filter(session=session).values_list("turn", flat=True).first() or 0


def update_state_store(session: AgentSession, turn: int, state: UpdaterState) -> None:
    """Store the next turn to read, and the state after the previous turns."""
    defaults = {"turn": turn, "data": state.to_json()}
    MemoryUpdateState.objects.update_or_create(session=session, defaults=defaults)


def update_states_fork(*, parent: AgentSession, child: AgentSession) -> None:
    """Store for a fork that its parent has read the shared turns, whose results its memory contains.

    The state after them is computed when it is first needed: that of the parent may contain later turns.
    """
    turn = min(update_state_turn(parent), child.turn_count)
    if turn:
        update_state_store(child, turn, UpdaterState())
    extraction = MemoryExtractionState.objects.filter(session=parent).first()
    if extraction is not None:
        turn = min(extraction.turn, child.turn_count)
        MemoryExtractionState.objects.create(session=child, turn=turn)


def _state_of_fork(session: AgentSession, end: int) -> UpdaterState:
    """Return the state after the turns before `end`, which the parent of a fork has read."""
    notes, state = Notes(), UpdaterState()
    for _, messages in messages_by_turn(session, 0, end):
        updated = update_notes(notes, state, messages, counter=counter())
        notes, state = updated.notes, updated.state
    rows = MemoryRevision.objects.filter(session=session).order_by("-number")[:_MAX_REVISIONS]
    recorded = {
        key
        for row in rows
        for key, origin in memory_notes(row).origins.items()
        if origin.via is Via.AUTO_UPDATE
    }
    # Those that the memory no longer contains were removed.
    state.shown = tuple(key for key in state.shown if key in recorded)
    return state
