"""Writes of working memory: every change is a revision, and of two writers at once none loses an item."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from compaction.adapters.tiktoken_counter import counter
from compaction.memory import ASKED_TOKENS, MAX_TOKENS, Author, Notes, Origin, Schema, Via, WorkingMemory
from compaction.memory.operations import Operated, Operation, operate
from compaction.memory.origins import lost_to
from redaction import redact
from sessions.models import AgentSession, MemoryRevision
from sessions.selectors.memory import memory_latest, memory_notes, memory_schema
from sessions.selectors.redaction import redaction_for
from sessions.services.memory.sightings import proposals_wait, sightings_follow
from sessions.store import bodies

#: So many of the largest fields are named where a memory is too large.
_NAMED = 3


class StaleMemory(Exception):
    """Another writer came first. `current` is the number of the revision that holds now."""

    def __init__(self, current: int) -> None:
        super().__init__(f"the memory is at revision {current}")
        self.current = current


class MemoryTooLarge(ValueError):
    """The memory would pass its limit. `field` is the largest one."""

    def __init__(self, tokens: int, memory: WorkingMemory) -> None:
        super().__init__(
            f"the memory would take {tokens:,} tokens; at most {MAX_TOKENS:,} are stored and "
            f"{ASKED_TOKENS:,} asked for. The largest fields: {_named(memory)}"
        )
        self.field = largest_fields(memory)[0][0]


class PersonsItem(ValueError):
    """A machine would take out or reword an item that a person wrote. `field` names its field."""

    def __init__(self, field: str, item: str) -> None:
        super().__init__(f"a person wrote {item[:80]!r} in {field}; only a person may change it")
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes, in which way, and from where: `turn` and `position` are those that it learnt it from, else
    the session's last turn."""

    author: Author
    via: Via = Via.PATCH
    reason: str = ""
    turn: int | None = None
    position: int | None = None


#: What a change makes of a memory.
Make = Callable[[WorkingMemory, Schema], Operated]


def memory_patch(
    *, session: AgentSession, changes: Mapping[str, Any], writer: Writer, expected: int | None = None
) -> MemoryRevision | None:
    """The revision that holds after `changes` (a merge patch); None: the memory was empty and stays so.

    A patch that changes nothing makes no revision. Secrets are taken out. `expected` is the number of the
    revision that the writer has read. Raises `StaleMemory`, `MemoryTooLarge`, `PersonsItem`,
    `WorkingMemoryError`.
    """
    clean, _ = redact(dict(changes), key=redaction_for(session.project_id))
    return _write(
        session=session,
        make=lambda memory, schema: Operated(memory=memory.patched(clean, schema)),
        writer=writer,
        expected=expected,
    )


def memory_operate(
    *, session: AgentSession, operations: Sequence[Operation], writer: Writer
) -> MemoryRevision | None:
    """The revision after operations on single items. They go on top of whatever holds, so no other writer's
    item is lost and none of them waits for a revision. Raises as `memory_patch` does."""
    key = redaction_for(session.project_id)
    clean = [
        Operation(
            op=one.op, field=one.field, item=redact(one.item, key=key)[0], new=redact(one.new, key=key)[0]
        )
        for one in operations
    ]
    return _write(
        session=session,
        make=lambda memory, schema: operate(memory, clean, schema),
        writer=writer,
        expected=None,
    )


@transaction.atomic
def _write(
    *, session: AgentSession, make: Make, writer: Writer, expected: int | None
) -> MemoryRevision | None:
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    latest = memory_latest(session_id=locked.pk)
    current = latest.number if latest is not None else 0
    if expected is not None and expected != current:
        raise StaleMemory(current)
    old = memory_notes(latest)
    made = make(old.memory, memory_schema(project_id=locked.project_id))
    lost = lost_to(old, made.memory, writer.author)
    if lost is not None:
        raise PersonsItem(*lost)
    last_turn = max(locked.turn_count - 1, 0)
    turn = min(writer.turn if writer.turn is not None else last_turn, last_turn)
    origin = Origin(author=writer.author, via=writer.via, turn=turn, position=writer.position)
    new = old.written(made.memory, origin, resolved=made.resolved).confirmed(made.confirmed)
    if new.memory == old.memory and new.stale == old.stale:
        return latest
    return revision_create(session=locked, number=current + 1, notes=new, turn=last_turn, writer=writer)


def revision_create(
    *, session: AgentSession, number: int, notes: Notes, turn: int, writer: Writer
) -> MemoryRevision:
    """Stores a revision. The session is locked. Raises `MemoryTooLarge`."""
    reason, _ = redact(writer.reason, key=redaction_for(session.project_id))
    revision = MemoryRevision.objects.create(
        session=session,
        number=number,
        turn_index=turn,
        author=writer.author,
        reason=reason,
        body=bodies.pack(bodies.json_bytes(notes.memory.to_json())),
        origins=bodies.pack(bodies.json_bytes(notes.to_json())),
        tokens=_tokens(notes),
    )
    sightings_follow(session=session, number=number, notes=notes, author=writer.author)
    if writer.via not in (Via.UPKEEP, Via.SHARED):
        proposals_wait(session=session)
    return revision


def memory_warning(memory: WorkingMemory, tokens: int) -> str | None:
    """What to tell the writer of a memory that is stored, but larger than it should be."""
    if tokens <= ASKED_TOKENS:
        return None
    return (
        f"the memory takes {tokens:,} tokens; {ASKED_TOKENS:,} are asked for. "
        f"The largest fields: {_named(memory)}"
    )


def largest_fields(memory: WorkingMemory) -> Sequence[tuple[str, int]]:
    """The fields with their tokens, largest first."""
    sizes = {
        name: counter().count(value if isinstance(value, str) else "\n".join(value))
        for name, value in memory.to_json().items()
    }
    return sorted(sizes.items(), key=lambda item: -item[1])[:_NAMED]


def _named(memory: WorkingMemory) -> str:
    return ", ".join(f"{name} ({tokens:,})" for name, tokens in largest_fields(memory))


def _tokens(notes: Notes) -> int:
    tokens = counter().count(notes.render())
    if tokens > MAX_TOKENS:
        raise MemoryTooLarge(tokens, notes.memory)
    return tokens
