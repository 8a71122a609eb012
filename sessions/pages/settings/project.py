"""The project's name and summarizer model, and creating projects."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.text import slugify
from django.views.decorators.http import require_http_methods

from accounts.models import Project
from accounts.services.projects import project_create, project_update
from sessions.pages.access import actor_of, owner_of, user_of, viewer_of
from sessions.pages.settings.common import ModelField, PlainForm, sent_by_owner, settings_page


class ProjectForm(PlainForm):
    name = forms.CharField(max_length=200)
    summarizer_model = ModelField(
        label="Summarizer model",
        help_text="Leave blank to use the server's default. Enter “off” to keep all content on this server.",
    )
    allows_sharing = forms.BooleanField(
        required=False,
        label="Allow sharing of sessions by link",
        help_text="Anyone who has a link can read the session without logging in, until the link expires.",
    )


class NewProjectForm(PlainForm):
    """The page also has a `ProjectForm`, so the ids of the fields differ."""

    name = forms.CharField(max_length=200, label="Name")

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="id_new_%s")

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not slugify(name):
            raise forms.ValidationError(
                "Use at least one letter (a–z) or digit. The project's URL is derived from them."
            )
        return name


@require_http_methods(["GET", "HEAD", "POST"])
def project_settings(request: HttpRequest, slug: str) -> HttpResponse:
    viewer, data = sent_by_owner(request, slug)
    form = ProjectForm(data, initial=vars(viewer.project))
    if not form.is_valid():
        return settings_page(request, viewer, "project.html", {"form": form, "new_form": NewProjectForm()})
    project_update(project=viewer.project, changes=form.cleaned_data, actor=actor_of(request))
    messages.success(request, "Project saved.")
    return redirect("settings", slug=slug)


@require_http_methods(["GET", "HEAD", "POST"])
def project_new(request: HttpRequest, slug: str) -> HttpResponse:
    """Create a project that the user owns. Requires owning the current one.

    The address bar shows this URL after invalid input, so GET redirects to the page with the form.
    """
    if request.method != "POST":
        return redirect("settings", slug=viewer_of(request, slug).project.slug)
    viewer = owner_of(request, slug)
    form = NewProjectForm(request.POST)
    names = {project.name.casefold() for project in viewer.projects}
    if form.is_valid() and form.cleaned_data["name"].casefold() in names:
        form.add_error("name", "You are already a member of a project with this name.")
    if not form.is_valid():
        context = {
            "form": ProjectForm(initial=vars(viewer.project)),
            "new_form": form,
            "current_section": "settings",
        }
        return settings_page(request, viewer, "project.html", context)
    name = form.cleaned_data["name"]
    project = project_create(name=name, slug=_free_slug(name), owner=user_of(request))
    messages.success(request, f"Project {name} created.")
    return redirect("settings", slug=project.slug)


def _free_slug(name: str) -> str:
    base = slugify(name)[:56].strip("-")
    taken = set(Project.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    free = (slug for number in range(1, len(taken) + 2) if (slug := _numbered(base, number)) not in taken)
    return next(free)


def _numbered(base: str, number: int) -> str:
    return base if number == 1 else f"{base}-{number}"
