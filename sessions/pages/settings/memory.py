"""Working memory settings: automatic updates, extraction model, proposals and custom fields."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from accounts.models import Project
from accounts.services.projects import project_update
from compaction.errors import WorkingMemoryError
from sessions.pages.access import actor_of
from sessions.pages.settings.common import ModelField, PlainForm, sent_by_owner, settings_page
from sessions.selectors.memory.revisions import schema_of
from sessions.selectors.summarizers import reader_missing


class MemoryForm(PlainForm):
    """`own` lists the custom fields, one per line: `name`, or `name: text` for a single text."""

    upkeep = forms.BooleanField(
        label="Automatic updates",
        required=False,
        help_text="Records file edits and failures from each turn's tool calls. Does not call a model.",
    )
    model = ModelField(
        label="Extraction model",
        help_text="Extracts decisions, open questions and next steps from new turns if automatic updates are "
        "on. Each call is billed. Leave blank to turn it off.",
    )
    proposals = forms.BooleanField(
        label="Automatic proposals",
        required=False,
        help_text="When a session is idle, its facts written by people or models are proposed for review.",
    )
    own = forms.CharField(
        label="Custom fields",
        required=False,
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="One name per line. “name: text” defines a single text instead of a list.",
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
    viewer, data = sent_by_owner(request, slug)
    project = viewer.project
    initial = {
        "upkeep": project.memory_upkeep,
        "model": project.memory_model,
        "proposals": project.memory_proposals,
        "own": "\n".join(map(_line, project.memory_fields)),
    }
    form = MemoryForm(data, initial=initial)
    if not form.is_valid():
        model_missing = reader_missing(project) if project.memory_model else ""
        return settings_page(request, viewer, "memory.html", {"form": form, "model_missing": model_missing})
    project_update(project=project, changes=_changes(project, form), actor=actor_of(request))
    messages.success(request, "Working memory settings saved.")
    return redirect("settings_memory", slug=slug)


def _changes(project: Project, form: MemoryForm) -> dict[str, Any]:
    """Return the project's changed settings. Properties of custom fields that the form omits are kept."""
    known = {field["name"]: field for field in project.memory_fields}
    data = form.cleaned_data
    return {
        "memory_upkeep": data["upkeep"],
        "memory_model": data["model"],
        "memory_proposals": data["proposals"],
        "memory_fields": [known.get(field["name"], {}) | field for field in data["own"]],
    }


def _field(line: str) -> dict[str, Any]:
    name, _, kind = line.partition(":")
    return {"name": name.strip(), "single": kind.strip() == "text"}


def _line(field: dict[str, Any]) -> str:
    return f"{field['name']}: text" if field.get("single") else str(field["name"])
