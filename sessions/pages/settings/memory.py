"""How a project uses working memory: upkeep, a model that reads, proposals, fields of its own."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from accounts.models import Project
from accounts.services import project_update
from compaction.errors import WorkingMemoryError
from sessions.pages.access import viewer_of
from sessions.pages.settings.frame import ModelField, PlainForm, owner_of, settings_page, user_of
from sessions.selectors.memory import schema_of
from sessions.selectors.summarizers import reader_missing


class MemoryForm(PlainForm):
    """`own` are the project's fields: a name a line, `name: text` for a single text."""

    upkeep = forms.BooleanField(
        required=False,
        help_text="A worker reads each turn and notes what tools were seen to do. No model is asked.",
    )
    model = ModelField(
        label="Model that reads",
        help_text="With upkeep on it reads new turns for decisions, open questions and the next step. "
        "Each reading is paid for. Empty: none.",
    )
    proposals = forms.BooleanField(
        required=False,
        help_text="What a person or a model wrote in a session's memory waits for review under Memory once "
        "the session rests.",
    )
    own = forms.CharField(
        label="Fields of your own",
        required=False,
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="A name a line. “name: text” holds one text instead of a list.",
    )

    def clean_own(self) -> list[dict[str, Any]]:
        lines = [line.strip() for line in self.cleaned_data["own"].splitlines() if line.strip()]
        fields = [_field(line) for line in lines]
        try:
            schema_of(fields)
        except WorkingMemoryError as error:
            raise forms.ValidationError(f"{error}.") from None
        return fields


@require_http_methods(["GET", "HEAD", "POST"])
def project_memory(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method == "POST":
        return _save(request, slug)
    viewer = viewer_of(request, slug)
    project = viewer.project
    initial = {
        "upkeep": project.memory_upkeep,
        "model": project.memory_model,
        "proposals": project.memory_proposals,
        "own": "\n".join(map(_line, project.memory_fields)),
    }
    context = {
        "form": MemoryForm(initial=initial),
        "model_missing": reader_missing(project) if project.memory_model else "",
    }
    return settings_page(request, viewer, "memory.html", context)


def _save(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = owner_of(request, slug)
    form = MemoryForm(request.POST)
    if not form.is_valid():
        return settings_page(request, viewer, "memory.html", {"form": form}, status=422)
    project_update(project=viewer.project, changes=_changes(viewer.project, form), user=user_of(request))
    messages.success(request, "Saved.")
    return redirect("settings_memory", slug=slug)


def _changes(project: Project, form: MemoryForm) -> dict[str, Any]:
    """The fields of the project; of its own fields the page does not show all, and keeps what it does not."""
    known = {field["name"]: field for field in project.memory_fields}
    said = form.cleaned_data
    return {
        "memory_upkeep": said["upkeep"],
        "memory_model": said["model"].strip(),
        "memory_proposals": said["proposals"],
        "memory_fields": [known.get(field["name"], {}) | field for field in said["own"]],
    }


def _field(line: str) -> dict[str, Any]:
    name, _, kind = line.partition(":")
    return {"name": name.strip(), "single": kind.strip() == "text"}


def _line(field: dict[str, Any]) -> str:
    return f"{field['name']}: text" if field.get("single") else str(field["name"])
