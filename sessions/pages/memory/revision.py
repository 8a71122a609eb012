"""The working memory at one revision or turn, compared with another one."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.models import AgentSession, MemoryRevision
from sessions.pages.access import Viewer, number_of, page_or_fragment, with_session
from sessions.pages.memory.rows import changed_only, compare, field_rows
from sessions.pages.tabs import session_context
from sessions.selectors.memory.revisions import (
    memory_latest,
    memory_notes,
    memory_revision,
    memory_revision_at,
)


@require_safe
@with_session
def session_memory_revision(
    request: HttpRequest, viewer: Viewer, session: AgentSession, number: int
) -> HttpResponse:
    """Compare a revision with the previous one.

    Query parameters: `against` (another revision; 0 is the empty memory), `view` (`inline` or `side`) and
    `show=all` (includes unchanged items).
    """
    row = _revision_or_404(session, number)
    requested = number_of(request, "against")
    against = number - 1 if requested is None else requested
    other = _revision_or_404(session, against) if against else None
    latest = memory_latest(session_id=session.pk)
    context = session_context(viewer, session, "session_memory") | {
        **_comparison(request, other, row),
        "row": row,
        "against": against,
        "old_name": f"Revision {against}" if against else "Empty memory",
        "new_name": f"Revision {number}",
        "newest": latest.number if latest is not None else 0,
        "previous": number - 1 or None,
        "next": number + 1 if latest is not None and number < latest.number else None,
    }
    return page_or_fragment(request, "memory/revision.html", "memory/_revision.html", context)


def _comparison(
    request: HttpRequest, old: MemoryRevision | None, new: MemoryRevision | None
) -> dict[str, Any]:
    """Return the context of a comparison: the items that differ, or all items with `show=all`."""
    fields = compare(memory_notes(old), memory_notes(new))
    is_whole = request.GET.get("show") == "all"
    return {
        "view": "inline" if request.GET.get("view") == "inline" else "side",
        "compared": fields if is_whole else changed_only(fields),
        "is_whole": is_whole,
        "same": sum(len(field.pairs) - len(field.changed) for field in fields),
    }


def _revision_or_404(session: AgentSession, number: int) -> MemoryRevision:
    row = memory_revision(session_id=session.pk, number=number)
    if row is None:
        raise Http404("Revision not found")
    return row


def memory_at_turn(request: HttpRequest, viewer: Viewer, session: AgentSession, turn: int) -> HttpResponse:
    """Show the memory after a turn; with `against`, compare it with that after another turn.

    Further query parameters: `view` (`inline` or `side`) and `show=all` (includes unchanged items).
    """
    last = max(session.turn_count - 1, 0)
    turn = min(turn, last)
    against = number_of(request, "against", maximum=last)
    rows = {
        at: memory_revision_at(session_id=session.pk, turn=at) for at in (turn, against) if at is not None
    }
    first, second = min(rows), max(rows)
    context = session_context(viewer, session, "session_memory") | {
        **_comparison(request, rows[first], rows[second]),
        "turn": turn,
        "against": against,
        "revisions": list(rows.values()),
        "last_turn": last,
        "old_name": f"Turn {first}",
        "new_name": f"Turn {second}",
        "fields": field_rows(memory_notes(rows[turn])),
    }
    return page_or_fragment(request, "memory/at_turn.html", "memory/at_turn.html", context)
