"""The list of a project's sessions, and what an empty one offers."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from accounts.selectors import projects_of
from sessions.pages.access import page_or_fragment, viewer_of, wants_fragment
from sessions.selectors.filters import Cursor, SessionFilter
from sessions.selectors.sessions import COUNT_LIMIT, sessions_count, sessions_facets, sessions_list
from sessions.services.samples import sample_load

_SIZE = re.compile(r"([\d.]+)\s*([km]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


class TokensField(forms.CharField):
    """A number of tokens as people write it: 50000, 50,000, 50k, 1.2M."""

    def clean(self, value: Any) -> int | None:
        text = super().clean(value).replace(",", "")
        if not text:
            return None
        match = _SIZE.fullmatch(text)
        if match is None or match[1].count(".") > 1 or match[1] == ".":
            raise forms.ValidationError("Write a number of tokens such as 50000, 50k or 1.2M.")
        return min(int(float(match[1]) * _UNITS[match[2].lower()]), 2_000_000_000)


class FilterForm(forms.Form):
    """The list's filters as they stand in the address."""

    q = forms.CharField(required=False, max_length=200)
    agent = forms.CharField(required=False, max_length=100)
    model = forms.CharField(required=False, max_length=200)
    tag = forms.CharField(required=False, max_length=100)
    compacted = forms.ChoiceField(required=False, choices=[("", "any"), ("yes", "yes"), ("no", "no")])
    active_from = forms.DateField(required=False)
    active_to = forms.DateField(required=False)
    peak = TokensField(required=False, max_length=20)
    sub_agents = forms.BooleanField(required=False)

    def wanted(self) -> SessionFilter:
        """What is asked for. A field that cannot be read narrows nothing; its error stands beside it."""
        self.is_valid()
        data = self.cleaned_data
        return SessionFilter(
            text=_plain(data.get("q")),
            agent=_plain(data.get("agent")),
            model=_plain(data.get("model")),
            tag=_plain(data.get("tag")),
            compacted={"yes": True, "no": False}.get(data.get("compacted") or ""),
            active_from=data.get("active_from"),
            active_to=data.get("active_to"),
            minimum_peak=data.get("peak"),
            sub_agents=data.get("sub_agents", False),
        )


def _plain(text: str | None) -> str:
    return (text or "").strip()


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The front page is the list of the user's first project."""
    project = projects_of(request.user).first()
    if project is None:
        return render(request, "sessions/no_project.html")
    return redirect("sessions", slug=project.slug)


@require_safe
def session_list(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    form = FilterForm(request.GET)
    wanted = form.wanted()
    after = Cursor.decode(request.GET.get("after", ""))
    page = sessions_list(project=viewer.project, wanted=wanted, after=after)
    context: dict[str, Any] = {
        "viewer": viewer,
        "form": form,
        "wanted": wanted,
        "page": page,
        "is_first": after is None,
        "next_query": _query(request.GET, after=page.next_cursor) if page.next_cursor else "",
        "first_query": _query(request.GET, after=None),
        "count": sessions_count(project=viewer.project, wanted=wanted),
        "count_limit": COUNT_LIMIT,
    }
    if not wants_fragment(request):
        context["facets"] = sessions_facets(project=viewer.project)
    return page_or_fragment(request, "sessions/list.html", "sessions/_list.html", context)


@require_POST
def sample_create(request: HttpRequest, slug: str) -> HttpResponse:
    """Loads the sample session that ships with the product."""
    viewer = viewer_of(request, slug)
    if not viewer.may_write:
        raise PermissionDenied("Only members who may write can load the sample.")
    session = sample_load(project=viewer.project)
    messages.success(request, "The sample session is loaded.")
    return redirect("session", slug=slug, id=session.pk)


def _query(query: QueryDict, *, after: str | None) -> str:
    """The address's query with another beginning of the page, without the fields that are empty."""
    pairs = [(k, v) for k, v in query.items() if k != "after" and v]
    return urlencode([*pairs, *([("after", after)] if after else [])])
