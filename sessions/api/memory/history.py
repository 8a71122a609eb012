"""`sessions/{id}/memory/revisions/`, `diff/` and `timeline/`: the history of a working memory."""

from __future__ import annotations

from django.http import HttpResponse

from compaction.memory.diffs import diff
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.lookup import session_or_404
from sessions.api.memory.shapes import change_json, churn_json, memory_json, revision_not_found, step_json
from sessions.api.paging import cursor_encode, limit_param, number_cursor, page_json, paging
from sessions.api.parameters import int_param, int_parameter
from sessions.api.schema import operation
from sessions.api.serializers import memory as serializers
from sessions.api.serializers.fields import MAX_TOKENS
from sessions.selectors.memory.revisions import (
    memory_latest,
    memory_notes,
    memory_page,
    memory_revision,
    memory_span,
    memory_timeline,
)


class MemoryRevisions(Endpoint):
    @operation("memory_revisions_list", "List memory revisions", serializers.MemoryPage, parameters=paging())
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Returns the revisions of the working memory, newest first."""
        session = session_or_404(call, session_id)
        limit = limit_param(call)
        rows = memory_page(session_id=session.pk, below=number_cursor(call), limit=limit + 1)
        return json_response(page_json(rows, limit, memory_json, lambda row: [row.number]))


class MemoryRevisionView(Endpoint):
    @operation("memory_revisions_get", "Retrieve a memory revision", serializers.MemoryRevision)
    def get(self, call: ApiCall, session_id: str, number: int) -> HttpResponse:
        """Returns one revision of the working memory, with the origin of each item."""
        session = session_or_404(call, session_id)
        row = memory_revision(session_id=session.pk, number=number) if number <= MAX_TOKENS else None
        if row is None:
            raise revision_not_found(number, "number")
        return json_response(memory_json(row))


class MemoryDiffs(Endpoint):
    @operation(
        "memory_diff",
        "Compare memory revisions",
        serializers.MemoryDiff,
        parameters=[
            int_parameter("from", "Older revision; 0 is the empty memory. Defaults to the one before `to`."),
            int_parameter("to", "Newer revision. Defaults to the latest."),
        ],
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Returns the changes between two revisions, and whether fields are rewritten again and again."""
        session = session_or_404(call, session_id)
        latest = memory_latest(session_id=session.pk)
        newest = latest.number if latest is not None else 0
        last = int_param(call, "to", default=newest)
        first = int_param(call, "from", default=max(last - 1, 0))
        for name, number in (("from", first), ("to", last)):
            if number > newest:
                raise revision_not_found(number, name)
        old, new = (memory_notes(memory_revision(session_id=session.pk, number=n)) for n in (first, last))
        low, high = sorted((first, last))
        memories = memory_span(
            session_id=session.pk, first=max(low, high - serializers.CHURN_REVISIONS), last=high
        )
        return json_response(
            {
                "from": first,
                "to": last,
                "changes": [change_json(change) for change in diff(old.memory, new.memory, new.resolved)],
                "churn": churn_json(memories),
            }
        )


class MemorySteps(Endpoint):
    @operation(
        "memory_timeline", "List memory changes", serializers.MemoryTimeline, parameters=paging(maximum=100)
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Returns what each revision changed, newest first."""
        session = session_or_404(call, session_id)
        limit = limit_param(call, maximum=100)
        steps = memory_timeline(session_id=session.pk, below=number_cursor(call), limit=limit)
        last = steps[-1].row.number if steps else 1
        more = cursor_encode(last) if len(steps) == limit and last > 1 else None
        return json_response({"data": [step_json(step) for step in steps], "next_cursor": more})
