"""Load and remove the sample data, and show the progress of loading."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from sessions.models import SampleLoad
from sessions.pages.access import actor_of, page_or_fragment, viewer_of, wants_fragment, writer_of
from sessions.selectors.samples import sample_of
from sessions.services.samples import jobs


@require_http_methods(["GET", "HEAD", "POST"])
def sample(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the progress, which htmx polls, and redirect to the session list when done. POST starts it."""
    if request.method == "POST":
        viewer = writer_of(request, slug, action="load sample data")
        jobs.sample_load(project=viewer.project, actor=actor_of(request))
        return redirect("sample", slug=slug)
    viewer = viewer_of(request, slug)
    load = sample_of(viewer.project)
    if load is not None and load.state != SampleLoad.State.DONE:
        context = {"viewer": viewer, "load": load}
        return page_or_fragment(request, "sessions/sample.html", "sessions/_sample_progress.html", context)
    address = reverse("sessions", args=[slug])
    if not wants_fragment(request):
        return redirect(address)
    messages.success(
        request, "The sample data is ready. Open a session to see what the model saw at each turn."
    )
    return HttpResponse(headers={"HX-Redirect": address})


@require_POST
def sample_delete(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = writer_of(request, slug, action="remove sample data")
    if jobs.sample_remove(project=viewer.project, actor=actor_of(request)):
        messages.success(request, "Sample data removed.")
    return redirect("sessions", slug=slug)
