"""Reads of working memory: the newest revision, one, a page, and how it moved."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from compaction.memory import WorkingMemory
from sessions import bodies
from sessions.models import MemoryRevision


def memory_latest(*, session_id: UUID) -> MemoryRevision | None:
    """The revision that holds now; None where nothing was ever written."""
    return MemoryRevision.objects.filter(session_id=session_id).order_by("-number").first()


def memory_revision(*, session_id: UUID, number: int) -> MemoryRevision | None:
    return MemoryRevision.objects.filter(session_id=session_id, number=number).first()


def memory_page(*, session_id: UUID, below: int | None, limit: int) -> list[MemoryRevision]:
    """Revisions newest first, all below the number `below`."""
    rows = MemoryRevision.objects.filter(session_id=session_id)
    if below is not None:
        rows = rows.filter(number__lt=below)
    return list(rows.order_by("-number")[:limit])


def memory_span(*, session_id: UUID, first: int, last: int) -> Sequence[WorkingMemory]:
    """The memories of the revisions `first` to `last`, oldest first. Revision 0 is the empty memory."""
    rows = MemoryRevision.objects.filter(session_id=session_id, number__range=(first, last))
    empty = [WorkingMemory()] if first == 0 else []
    return [*empty, *(memory_value(row) for row in rows.order_by("number"))]


def memory_value(row: MemoryRevision | None) -> WorkingMemory:
    """What a revision holds; the empty memory where there is none."""
    if row is None:
        return WorkingMemory()
    return WorkingMemory.from_json(bodies.json_value(bodies.unpack(row.body)))
