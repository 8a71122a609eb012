"""Write working memory: every change creates a revision, and concurrent writers lose no items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from compaction.adapters.tiktoken_counter import counter
from compaction.memory.operations import Operated, Operation, operate
from compaction.memory.origins import Author, Notes, Origin, Via, first_protected_loss
from compaction.memory.schema import Schema
from compaction.memory.values import ASKED_TOKENS, MAX_TOKENS, WorkingMemory
from redaction import redact
from sessions.models import AgentSession, MemoryRevision
from sessions.selectors.memory.revisions import memory_latest, memory_notes, memory_schema
from sessions.selectors.redaction import redaction_for
from sessions.services.memory.fact_observations import observations_refresh, proposal_scan_schedule
from sessions.store.text import storable

#: Number of the largest fields named in messages about the size of a memory.
_LARGEST_FIELDS = 3


class StaleMemory(Exception):
    """Another writer changed the memory first. `current` is the number of the current revision."""

    def __init__(self, current: int) -> None:
        super().__init__(f"the memory is at revision {current}")
        self.current = current


class MemoryTooLarge(ValueError):
    """The memory would exceed its limit. `field` is its largest field."""

    def __init__(self, tokens: int, memory: WorkingMemory) -> None:
        super().__init__(
            f"the memory would have {tokens:,} tokens; the limit is {MAX_TOKENS:,}, and at most "
            f"{ASKED_TOKENS:,} are recommended. The largest fields: {_fields_label(memory)}"
        )
        self.field = largest_fields(memory)[0][0]


class ProtectedItem(ValueError):
    """A program tried to remove or reword an item that a user wrote. `field` names its field."""

    def __init__(self, field: str, item: str) -> None:
        super().__init__(f"{item[:80]!r} in {field} was written by a user; only a user may change it")
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The author, method and source of a change.

    `user_id` is the user who made it, if that is known.
    `turn` and `position` are those of the message from which the content was learned; by default the
    session's last turn.
    """

    author: Author
    via: Via = Via.PATCH
    reason: str = ""
    user_id: int | None = None
    turn: int | None = None
    position: int | None = None


#: Computes a changed memory.
Change = Callable[[WorkingMemory, Schema], Operated]


def memory_patch(
    *, session: AgentSession, changes: Mapping[str, Any], writer: Writer, expected: int | None = None
) -> MemoryRevision | None:
    """Apply a merge patch, and return the current revision, or None if the memory remains empty.

    A patch that changes nothing creates no revision. Secrets are redacted. `expected` is the number of the
    revision on which the patch is based. Raises `StaleMemory`, `MemoryTooLarge`, `ProtectedItem`,
    `WorkingMemoryError`.
    """
    clean, _ = redact(dict(changes), redaction=redaction_for(session.project_id))
    return _write(
        session=session,
        change=lambda memory, schema: Operated(memory=memory.patched(clean, schema)),
        writer=writer,
        expected=expected,
    )


def memory_operate(
    *, session: AgentSession, operations: Sequence[Operation], writer: Writer
) -> MemoryRevision | None:
    """Apply operations on single items to the current memory, and return the resulting revision.

    Items of other writers are kept, so no expected revision is needed. Raises the same errors as
    `memory_patch`.
    """
    key = redaction_for(session.project_id)
    clean = [
        replace(each, item=redact(each.item, redaction=key)[0], new=redact(each.new, redaction=key)[0])
        for each in operations
    ]
    return _write(
        session=session,
        change=lambda memory, schema: operate(memory, clean, schema),
        writer=writer,
        expected=None,
    )


@transaction.atomic
def _write(
    *, session: AgentSession, change: Change, writer: Writer, expected: int | None
) -> MemoryRevision | None:
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    latest = memory_latest(session_id=locked.pk)
    current = latest.number if latest is not None else 0
    if expected is not None and expected != current:
        raise StaleMemory(current)
    old = memory_notes(latest)
    changed = change(old.memory, memory_schema(project_id=locked.project_id))
    lost = first_protected_loss(old, changed.memory, writer.author)
    if lost is not None:
        raise ProtectedItem(*lost)
    last_turn = max(locked.turn_count - 1, 0)
    turn = min(writer.turn if writer.turn is not None else last_turn, last_turn)
    origin = Origin(author=writer.author, via=writer.via, turn=turn, position=writer.position)
    new = old.written(changed.memory, origin, resolved=changed.resolved).confirmed(changed.confirmed)
    if new.memory == old.memory and new.stale == old.stale:
        return latest
    return revision_create(session=locked, number=current + 1, notes=new, turn=last_turn, writer=writer)


def revision_create(
    *, session: AgentSession, number: int, notes: Notes, turn: int, writer: Writer
) -> MemoryRevision:
    """Store a revision. The caller has locked the session. Raises `MemoryTooLarge`."""
    reason, _ = redact(writer.reason, redaction=redaction_for(session.project_id))
    revision = MemoryRevision.objects.create(
        session=session,
        number=number,
        turn_index=turn,
        author=writer.author,
        user_id=writer.user_id,
        reason=storable(reason),
        body=notes.memory.to_json(),
        origins=notes.to_json(),
        tokens=_tokens(notes),
    )
    observations_refresh(session=session, number=number, notes=notes, author=writer.author)
    if writer.via not in (Via.AUTO_UPDATE, Via.SHARED):
        proposal_scan_schedule(session=session)
    return revision


def memory_warning(memory: WorkingMemory, tokens: int) -> str | None:
    """Return a warning if the memory is larger than recommended, else None."""
    if tokens <= ASKED_TOKENS:
        return None
    return (
        f"the memory has {tokens:,} tokens; at most {ASKED_TOKENS:,} are recommended. "
        f"The largest fields: {_fields_label(memory)}"
    )


def largest_fields(memory: WorkingMemory) -> Sequence[tuple[str, int]]:
    """Return the largest fields with their tokens, largest first."""
    sizes = {
        name: counter().count(value if isinstance(value, str) else "\n".join(value))
        for name, value in memory.to_json().items()
    }
    return sorted(sizes.items(), key=lambda item: -item[1])[:_LARGEST_FIELDS]


def _fields_label(memory: WorkingMemory) -> str:
    return ", ".join(f"{name} ({tokens:,})" for name, tokens in largest_fields(memory))


def _tokens(notes: Notes) -> int:
    tokens = counter().count(notes.render())
    if tokens > MAX_TOKENS:
        raise MemoryTooLarge(tokens, notes.memory)
    return tokens
