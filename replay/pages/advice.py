"""Adopting a recommended policy as the project's default."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from replay.services.advice import NoSuchChoice, advice_apply
from sessions.pages.access import actor_of, owner_of


@require_POST
def replay_advice(request: HttpRequest, slug: str) -> HttpResponse:
    """Make the chosen policy the project's default. Only owners can do this."""
    viewer = owner_of(request, slug)
    try:
        run, setting = UUID(request.POST.get("run", "")), int(request.POST.get("setting", ""))
        policy = advice_apply(project=viewer.project, run_id=run, setting=setting, actor=actor_of(request))
    except (NoSuchChoice, ValueError):
        raise Http404("Policy not found in this replay") from None
    messages.success(request, f"New sessions use {policy.name}. Existing sessions keep their policy.")
    return redirect("replay", slug=slug)
