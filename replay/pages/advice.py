"""One click makes an advised policy the project's own."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from replay.services.advice import NoSuchChoice, advice_apply
from sessions.pages.access import owner_of, user_of


@require_POST
def replay_advice(request: HttpRequest, slug: str) -> HttpResponse:
    """Owners only, as for every change of a project's policy."""
    viewer = owner_of(request, slug)
    try:
        run, setting = UUID(request.POST.get("run", "")), int(request.POST.get("setting", ""))
        policy = advice_apply(project=viewer.project, run_id=run, setting=setting, user=user_of(request))
    except (NoSuchChoice, ValueError):
        raise Http404("no such choice") from None
    messages.success(request, f"New sessions begin with {policy.name}. Those that are there keep theirs.")
    return redirect("replay", slug=slug)
