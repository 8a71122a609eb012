"""What upkeep remembers of a session, as it is stored."""

from __future__ import annotations

from compaction.memory.updates import UpdaterState
from sessions.models import AgentSession, MemoryWatch
from sessions.store import bodies


def watch_load(session: AgentSession) -> tuple[int, UpdaterState]:
    """The next turn that upkeep reads, and what it remembers of those before."""
    row = MemoryWatch.objects.filter(session=session).first()
    if row is None:
        return 0, UpdaterState()
    return row.turn, UpdaterState.from_json(bodies.json_value(bodies.unpack(row.data)))


def watch_turn(session: AgentSession) -> int:
    """The next turn that upkeep reads."""
    return MemoryWatch.objects.filter(session=session).values_list("turn", flat=True).first() or 0


def watch_store(session: AgentSession, turn: int, watch: UpdaterState) -> None:
    data = bodies.pack(bodies.json_bytes(watch.to_json()))
    MemoryWatch.objects.update_or_create(session=session, defaults={"turn": turn, "data": data})
