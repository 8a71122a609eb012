"""JSON of working memories, their changes and their timeline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from compaction.errors import WorkingMemoryError
from compaction.memory.diffs import Change, churn, motions
from compaction.memory.origins import Notes
from compaction.memory.values import WorkingMemory
from sessions.api.errors import ApiError, Conflict, InvalidRequest, NotFound, about, sentence
from sessions.models import MemoryRevision
from sessions.selectors.memory.revisions import Step, memory_notes
from sessions.services.memory.revisions import MemoryTooLarge, ProtectedItem, memory_warning


def memory_json(row: MemoryRevision | None) -> dict[str, Any]:
    notes, tokens = memory_notes(row), row.tokens if row is not None else 0
    return {
        "revision": row.number if row is not None else 0,
        "memory": notes.memory.to_json(),
        "tokens": tokens,
        "turn": row and row.turn_index,
        "author": row and row.author,
        "reason": row.reason if row is not None else "",
        "at": row and row.created_at,
        "warning": memory_warning(notes.memory, tokens),
        "items": _items_json(notes),
    }


def _items_json(notes: Notes) -> list[dict[str, Any]]:
    return [
        {
            "field": name,
            "text": item,
            "author": origin.author.value,
            "via": origin.via.value,
            "turn": origin.turn,
            "message": origin.position,
            "stale": origin.stale or None,
        }
        for name, _ in notes.memory.fields()
        for item in notes.memory.items(name)
        for origin in (notes.origin(name, item),)
    ]


def change_json(change: Change) -> dict[str, Any]:
    always = {"field": change.field, "added": change.added, "removed": change.removed}
    optional = {"reworded": change.reworded, "resolved": change.resolved}
    return always | {name: items for name, items in optional.items() if items}


def churn_json(memories: Sequence[WorkingMemory]) -> dict[str, Any]:
    verdict, share = churn(memories)
    fields = [
        {
            "field": motion.field,
            "motion": motion.motion.value,
            "changes": motion.changes,
            "losses": motion.losses,
            "unmoved": motion.unmoved,
        }
        for motion in motions(memories)
    ]
    return {"verdict": verdict.value, "share": share, "fields": fields}


def step_json(step: Step) -> dict[str, Any]:
    row = step.row
    return {
        "revision": row.number,
        "turn": row.turn_index,
        "author": row.author,
        "reason": row.reason,
        "at": row.created_at,
        "tokens": row.tokens,
        "changes": [change_json(change) for change in step.changes],
        "stale": [{"field": name, "text": item, "reason": reason} for name, item, reason in step.stale],
        "confirmed": [{"field": name, "text": item} for name, item in step.confirmed],
    }


def etag_of(row: MemoryRevision | None) -> str:
    return f'"{row.number if row is not None else 0}"'


def revision_not_found(number: int, param: str) -> NotFound:
    return NotFound(f"No revision {number} of this working memory.", param=param)


def memory_error(
    error: MemoryTooLarge | ProtectedItem | WorkingMemoryError, *, known: Collection[str] | None = None
) -> ApiError:
    """Return the API error for a change of memory. A field that is not among those `known` is unknown."""
    match error:
        case MemoryTooLarge():
            return InvalidRequest("memory_too_large", sentence(error), status=422, param=error.field)
        case ProtectedItem():
            return Conflict("written_by_a_person", sentence(error), param=error.field)
        case WorkingMemoryError():
            code = "invalid_field" if known is None or error.field in known else "unknown_field"
            return InvalidRequest(code, about(error.field, error), param=error.field)
