"""Chart data for one session of a run: prompt sizes under each policy at one budget."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from compaction.replay.result import Result
from replay.pages.run import run_of
from replay.pages.session_result import session_result
from replay.selectors.results import targets_of
from sessions.pages.access import private, session_of, viewer_of

#: Maximum number of points per curve. More points than pixels would only slow down the chart.
MAX_POINTS = 2_000


@require_safe
def replay_curves(request: HttpRequest, slug: str, run: UUID, id: UUID) -> JsonResponse:
    viewer = viewer_of(request, slug)
    found, session = run_of(viewer, run), session_of(viewer, id)
    target = next((t for t in targets_of(found) if t.session_id == session.pk), None)
    if target is None:
        raise Http404("The session is not part of this replay")
    result = session_result(found, target, limit=request.GET.get("budget", ""))
    first = result.policies[0].found if result.policies else None
    points = _points(first.result) if first else []
    return private(
        JsonResponse(
            {
                "budget": result.limit,
                "budget_tokens": first.budget_tokens if first else None,
                "turns": [first.result.series.turns[at] for at in points] if first else [],
                "policies": [
                    {
                        "name": policy.row.setting.policy.name,
                        "prompts": [policy.found.result.series.prompts[at] for at in points],
                        "compacted": policy.found.result.compacted,
                        "lost_turn": policy.found.lost_turn,
                    }
                    for policy in result.policies
                ],
            }
        )
    )


def _points(result: Result) -> list[int]:
    """Return the indexes of the calls to draw: all, or an even sample of a long session."""
    step = max(1, -(-result.calls // MAX_POINTS))
    return list(range(0, result.calls, step))
