"""The curves of one session of a run, for the chart: prompt sizes under each policy, one budget."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from compaction.replay import Result
from replay.pages.run import run_of
from replay.pages.shown import shown_session
from replay.selectors.table import targets_of
from sessions.pages.access import private, session_of, viewer_of

#: Points of one curve: more than a screen has columns would only be slower.
MOST_POINTS = 2_000


@require_safe
def replay_curves(request: HttpRequest, slug: str, run: UUID, id: UUID) -> JsonResponse:
    viewer = viewer_of(request, slug)
    found, session = run_of(viewer, run), session_of(viewer, id)
    target = next((t for t in targets_of(found) if t.session_id == session.pk), None)
    if target is None:
        raise Http404("the session is not in this replay")
    shown = shown_session(found, target, limit=request.GET.get("budget", ""))
    policies = shown.policies
    kept = _kept(policies[0].found.result) if policies else []
    return private(
        JsonResponse(
            {
                "budget": shown.limit,
                "turns": [policies[0].found.result.series.turns[at] for at in kept] if policies else [],
                "policies": [
                    {
                        "name": policy.row.setting.policy.name,
                        "prompts": [policy.found.result.series.prompts[at] for at in kept],
                        "compacted": policy.found.result.compacted,
                        "lost_turn": policy.found.lost_turn,
                    }
                    for policy in policies
                ],
            }
        )
    )


def _kept(result: Result) -> list[int]:
    """The calls that are drawn: all, or evenly many of a long session."""
    step = max(1, -(-result.calls // MOST_POINTS))
    return list(range(0, result.calls, step))
