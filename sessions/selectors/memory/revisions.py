"""Working memory: revisions, their history, and the custom fields of a project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from accounts.models import Project
from compaction.memory.diffs import Change, diff
from compaction.memory.origins import Key, Notes
from compaction.memory.schema import CustomField, Schema
from compaction.memory.updates.items import STATE
from compaction.memory.values import WorkingMemory
from sessions.models import MemoryRevision

#: Fields that automatic updates fill, in addition to the eight standard ones.
BUILT_IN = (CustomField(name=STATE, description="what commands changed, and the last runs of tests"),)


def memory_latest(*, session_id: UUID) -> MemoryRevision | None:
    """Return the latest revision, or None if nothing was written yet."""
    return MemoryRevision.objects.filter(session_id=session_id).order_by("-number").first()


def memory_revision(*, session_id: UUID, number: int) -> MemoryRevision | None:
    """Return a revision by its number, or None."""
    rows = MemoryRevision.objects.filter(session_id=session_id, number=number)
    return rows.select_related("user").first()


def memory_revision_at(*, session_id: UUID, turn: int) -> MemoryRevision | None:
    """Return the revision that was current after a turn, or None if the memory was still empty."""
    rows = MemoryRevision.objects.filter(session_id=session_id, turn_index__lte=turn)
    return rows.order_by("-number").first()


def memory_page(*, session_id: UUID, below: int | None, limit: int) -> list[MemoryRevision]:
    """Return a page of revisions below the number `below`, newest first."""
    rows = MemoryRevision.objects.filter(session_id=session_id).select_related("user")
    if below is not None:
        rows = rows.filter(number__lt=below)
    return list(rows.order_by("-number")[:limit])


def memory_span(*, session_id: UUID, first: int, last: int) -> Sequence[WorkingMemory]:
    """Return the memories of revisions `first` to `last`, oldest first. Revision 0 is the empty memory."""
    rows = MemoryRevision.objects.filter(session_id=session_id, number__range=(first, last))
    empty = [WorkingMemory()] if first == 0 else []
    return [*empty, *(memory_value(row) for row in rows.order_by("number"))]


def memory_value(row: MemoryRevision | None) -> WorkingMemory:
    """Return the memory of a revision, or the empty memory for None."""
    return WorkingMemory.from_json(row.body) if row is not None else WorkingMemory()


def memory_notes(row: MemoryRevision | None) -> Notes:
    """Return the memory of a revision with the recorded origins of its items."""
    return Notes.from_json(memory_value(row), (row.origins if row is not None else None) or {})


def memory_schema(*, project_id: UUID) -> Schema:
    """Return the memory fields of a project."""
    return schema_of(Project.objects.values_list("memory_fields", flat=True).get(pk=project_id))


def schema_of(fields: Sequence[Mapping[str, Any]]) -> Schema:
    """Return the schema with these custom fields. Raises `WorkingMemoryError` for invalid fields."""
    return Schema((*BUILT_IN, *(CustomField(**field) for field in fields)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One revision of the timeline: its changes, and the items it marked as stale or as current again."""

    row: MemoryRevision
    changes: Sequence[Change]
    stale: Sequence[tuple[str, str, str]]  #: field, item, reason
    confirmed: Sequence[Key]


def memory_timeline(*, session_id: UUID, below: int | None, limit: int) -> list[Step]:
    """Return the changes of each revision below the number `below`, newest first."""
    rows = memory_page(session_id=session_id, below=below, limit=limit + 1)
    notes = [memory_notes(row) for row in rows]
    if len(rows) <= limit:
        notes.append(Notes())
    return [
        Step(
            row=row,
            changes=diff(old.memory, new.memory, new.resolved),
            stale=_newly_stale(old, new),
            confirmed=[key for key in old.stale if key in new.origins and key not in new.stale],
        )
        for row, new, old in zip(rows[:limit], notes, notes[1:], strict=False)
    ]


def _newly_stale(old: Notes, new: Notes) -> list[tuple[str, str, str]]:
    return [(*key, reason) for key, reason in new.stale.items() if key not in old.stale]


def memory_sizes(*, session_id: UUID, last: int) -> list[tuple[int, int, int]]:
    """Return revision, turn and tokens of the newest `last` revisions, oldest first."""
    rows = MemoryRevision.objects.filter(session_id=session_id).order_by("-number")
    return list(rows.values_list("number", "turn_index", "tokens")[:last])[::-1]
