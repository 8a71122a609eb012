"""Load and store the state of a session's automatic memory updates."""

from __future__ import annotations

from compaction.memory.updates import UpdaterState
from sessions.models import AgentSession, MemoryUpdateState
from sessions.store import bodies


def update_state_load(session: AgentSession) -> tuple[int, UpdaterState]:
    """Return the next turn to read, and the state after the previous turns."""
    row = MemoryUpdateState.objects.filter(session=session).first()
    if row is None:
        return 0, UpdaterState()
    return row.turn, UpdaterState.from_json(bodies.json_value(bodies.unpack(row.data)))


def update_state_turn(session: AgentSession) -> int:
    """Return the next turn that automatic updates will read."""
    return MemoryUpdateState.objects.filter(session=session).values_list("turn", flat=True).first() or 0


def update_state_store(session: AgentSession, turn: int, state: UpdaterState) -> None:
    """Store the next turn to read, and the state after the previous turns."""
    data = bodies.pack(bodies.json_bytes(state.to_json()))
    MemoryUpdateState.objects.update_or_create(session=session, defaults={"turn": turn, "data": data})
