"""Store the system prompts and tools of a log, with the turns from which they apply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compaction.prefixes import common_length
from sessions.models import AgentSession, Preamble
from sessions.services.imports.prepare import PreparedSession, PreparedTurn
from sessions.services.ingestion import NewPreamble
from sessions.services.push.preambles import preamble_of

#: A system prompt and tools, after the index of the first turn with them.
_FromTurn = tuple[int, NewPreamble]


def preambles_replace(session: AgentSession, prepared: PreparedSession) -> int | None:
    """Replace the stored versions by those of the log, if it contains any.

    Returns the first turn whose system prompt or tools change, or None. The caller saves the session.
    """
    opening = [(0, prepared.preamble)] if prepared.preamble is not None else []
    found = [*opening, *_changes(prepared.turns, first=0)]
    rows = session.preambles.order_by("version") if found else ()
    stored = [(row.from_turn, preamble_of(row).hash) for row in rows]
    new = [(turn, preamble.hash) for turn, preamble in found]
    if stored == new:
        return None
    session.preambles.all().delete()
    _store(session, found, version=1)
    same = common_length(stored, new)
    return min(turn for turn, _ in (*stored[same : same + 1], *new[same : same + 1]))


def preambles_append(session: AgentSession, turns: Iterable[PreparedTurn]) -> None:
    """Store the versions in turns that are appended to the session. The caller saves it."""
    found = list(_changes(turns, first=session.turn_count))
    if found:
        _store(session, found, version=session.preamble_version + 1)


def _store(session: AgentSession, found: Sequence[_FromTurn], *, version: int) -> None:
    """Store versions from this number on, and make the last one the session's."""
    Preamble.objects.bulk_create(
        Preamble(session=session, version=number, from_turn=turn, **preamble.columns)
        for number, (turn, preamble) in enumerate(found, start=version)
    )
    session.preamble_version, session.preamble_hash = version + len(found) - 1, found[-1][1].hash


def _changes(turns: Iterable[PreparedTurn], *, first: int) -> Iterator[_FromTurn]:
    """Yield the versions in turns, of which the first one has this index."""
    for index, turn in enumerate(turns, start=first):
        if turn.preamble is not None:
            yield index, turn.preamble
