"""Make a policy from a replay the project's default."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_http_methods

from replay.selectors.advice import Advice, advice_of, basis_of, policy_changes_of
from replay.selectors.results import ResultRow
from replay.services.advice import TooFewSessions, advice_apply, advice_choice
from sessions.pages.access import actor_of, owner_of, page


@require_http_methods(["GET", "HEAD", "POST"])
def replay_advice(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what the chosen policy changes. POST makes it the default. Requires an owner."""
    viewer = owner_of(request, slug)
    try:
        if request.method == "POST":
            run_id, setting = _choice(request.POST)
            policy = advice_apply(
                project=viewer.project, run_id=run_id, setting=setting, actor=actor_of(request)
            )
            messages.success(request, f"New sessions use {policy.name}. Existing sessions keep their policy.")
            return redirect("replay", slug=slug)
        run_id, setting = _choice(request.GET)
        run, row, policy = advice_choice(project=viewer.project, run_id=run_id, setting=setting)
    except TooFewSessions as error:
        text = f"A recommendation needs {error.needed} more replayed session{pluralize(error.needed)}."
        messages.error(request, text)
        return redirect("replay", slug=slug)
    except ValueError:  # the parameters are invalid, or the run has no such choice
        raise Http404("Policy not found in this replay") from None
    context = {
        "viewer": viewer,
        "run": run,
        "row": row,
        "policy": policy,
        "basis": basis_of(run),
        "changes": policy_changes_of(viewer.project, policy),
        "now": _current_row(advice_of(viewer.project), run.pk),
    }
    return page(request, "replay/advice.html", context)


def _choice(data: QueryDict) -> tuple[UUID, int]:
    return UUID(data.get("run", "")), int(data.get("setting", ""))


def _current_row(advice: Advice | None, run_id: UUID) -> ResultRow | None:
    """Return the result of the project's current policy in the run, if it was replayed."""
    if advice is None or advice.run.pk != run_id:
        return None
    return next((row for row in advice.choices if row.setting.policy.name == advice.current), None)
