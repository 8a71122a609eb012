"""The session list of a project and its filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    JsonResponse,
    QueryDict,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.models import Project
from accounts.selectors import projects_of
from sessions.pages.access import page_or_fragment, private, user_of, viewer_of, wants_fragment
from sessions.pages.links import Link
from sessions.pages.listing.bulk import selected_ids
from sessions.pages.listing.columns import COLUMNS, hidden_columns
from sessions.pages.listing.export import sessions_csv
from sessions.pages.listing.suggest import suggestions_of
from sessions.pages.saved_queries import query_clean
from sessions.pages.zones import zone_of
from sessions.selectors.lists.filter_expression import InvalidTerm, expression_read, size_read
from sessions.selectors.lists.filters import NEWEST, ORDERS, Cursor, SessionFilter, first_moment, last_moment
from sessions.selectors.lists.sessions import (
    COUNT_LIMIT,
    SessionsPage,
    saved_views,
    sessions_count,
    sessions_facets,
    sessions_list,
    sessions_newer,
)
from sessions.selectors.samples import sample_of


class TokensField(forms.CharField):
    """A number of tokens such as 50000, 50,000, 50k or 1.2M."""

    def clean(self, value: Any) -> int | None:
        text = super().clean(value)
        if not text:
            return None
        try:
            return size_read(text)
        except InvalidTerm as error:
            raise forms.ValidationError(str(error)) from None


class FilterForm(forms.Form):
    """The filters of the list, from the query string."""

    q = forms.CharField(required=False, max_length=500, label="Filter")
    agent = forms.CharField(required=False, max_length=100)
    model = forms.CharField(required=False, max_length=200)
    tag = forms.CharField(required=False, max_length=100)
    compacted = forms.ChoiceField(required=False, choices=[("", "any"), ("yes", "yes"), ("no", "no")])
    active_from = forms.DateField(required=False, label="Active from")
    active_to = forms.DateField(required=False, label="Active until")
    peak = TokensField(required=False, max_length=20, label="Min. peak")
    sub_agents = forms.BooleanField(required=False, label="Include sub-agents")
    starred = forms.BooleanField(required=False)

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.GET)
        self.zone = zone_of(request)
        self.user_id = user_of(request).pk

    def filters(self) -> SessionFilter:
        """Return the filter. Invalid fields and terms are reported in `errors`."""
        self.is_valid()
        data = self.cleaned_data
        read = expression_read(data.get("q", ""), self._fields(data), self.zone)
        for problem in read.problems:
            self.add_error("q", problem)
        return read.filters

    def active(self) -> list[str]:
        """Return the label and the value of each field that is set, apart from the expression."""
        fields = [self[name] for name in self.fields if name != "q"]
        return [
            str(field.label) if field.value() is True else f"{field.label}: {field.value()}"
            for field in fields
            if field.value()
        ]

    def _fields(self, data: dict[str, Any]) -> SessionFilter:
        return SessionFilter(
            agent=data.get("agent", ""),
            model=data.get("model", ""),
            tags=(data["tag"],) if data.get("tag") else (),
            compacted={"yes": True, "no": False}.get(data.get("compacted") or ""),
            active_from=first_moment(data["active_from"], self.zone) if data.get("active_from") else None,
            active_to=last_moment(data["active_to"], self.zone) if data.get("active_to") else None,
            minimum_peak=data.get("peak"),
            sub_agents=data.get("sub_agents", False),
            starred_by=self.user_id if data.get("starred") else None,
        )


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Redirect to the session list of the user's first project."""
    project = projects_of(request.user).first()
    if project is None:
        return render(request, "sessions/no_project.html")
    return redirect("sessions", slug=project.slug)


@require_safe
def session_list(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    form = FilterForm(request)
    filters = form.filters()
    order = _order(request)
    after = Cursor.decode(request.GET.get("after", ""), order)
    # An invalid filter selects nothing: all sessions would look like its result.
    page = (
        SessionsPage(rows=[], next_cursor=None)
        if form.errors
        else sessions_list(project=viewer.project, filters=filters, after=after, order=order)
    )
    first_query = query_clean(request.GET.urlencode())
    context: dict[str, Any] = {
        "viewer": viewer,
        "form": form,
        "filters": filters,
        "page": page,
        "is_first": after is None,
        "is_empty": not page.rows and after is None and not filters.is_set and not form.errors,
        "order": order,
        "sorts": _sorts(request.GET, order),
        "next_query": _query(request.GET, after=page.next_cursor) if page.next_cursor else "",
        "first_query": first_query,
        "columns": COLUMNS,
        "hidden": hidden_columns(request),
        "since": _since(page) if after is None and order == NEWEST else "",
        "count": _count(viewer.project, filters, page, after),
        "count_limit": COUNT_LIMIT,
    }
    if not wants_fragment(request):
        context["sample"] = sample_of(viewer.project)
        context["facets"] = sessions_facets(project=viewer.project)
        context["views"] = saved_views(project=viewer.project, user=request.user)
    return page_or_fragment(request, "sessions/list.html", "sessions/_list.html", context)


def _count(project: Project, filters: SessionFilter, page: SessionsPage, after: Cursor | None) -> int:
    """Return the number of sessions that match. No query if the first page shows all of them."""
    if after is None and page.next_cursor is None:
        return len(page.rows)
    return sessions_count(project=project, filters=filters)


@require_safe
def session_suggest(request: HttpRequest, slug: str) -> JsonResponse:
    """Return suggestions for a filter expression."""
    viewer = viewer_of(request, slug)
    text = request.GET.get("q", "")[:500].replace("\0", "")
    found = suggestions_of(project=viewer.project, text=text)
    return private(JsonResponse({"suggestions": [asdict(suggestion) for suggestion in found]}))


@require_safe
def sessions_updated(request: HttpRequest, slug: str) -> HttpResponse:
    """Report how many sessions were updated since the list was loaded. The list does not reload itself."""
    viewer = viewer_of(request, slug)
    try:
        since = datetime.fromisoformat(request.GET.get("since", ""))
    except ValueError:
        since = timezone.now()
    if since.tzinfo is None:
        since = since.replace(tzinfo=UTC)
    filters = FilterForm(request).filters()
    context = {
        "viewer": viewer,
        "updated": sessions_newer(project=viewer.project, filters=filters, since=since),
        "since": since.isoformat(),
        "query": query_clean(_query(request.GET, after=None, without=("since",))),
    }
    return page_or_fragment(request, "sessions/_updated.html", "sessions/_updated.html", context)


@require_safe
def sessions_export(request: HttpRequest, slug: str) -> HttpResponseBase:
    viewer = viewer_of(request, slug)
    form = FilterForm(request)
    filters = replace(form.filters(), ids=selected_ids(request.GET))
    if form.errors:
        return HttpResponseBadRequest("The filter is invalid.", content_type="text/plain; charset=utf-8")
    lines = sessions_csv(project=viewer.project, filters=filters)
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{slug}-sessions.csv"'
    return private(response)


def _since(page: SessionsPage) -> str:
    return page.rows[0].session.last_active_at.isoformat() if page.rows else ""


def _order(request: HttpRequest) -> str:
    order = request.GET.get("sort", NEWEST)
    return order if order in ORDERS else NEWEST


def _sorts(query: QueryDict, order: str) -> dict[str, Link]:
    """Return the sort options for the current filter. Each leads to the first page."""
    kept = {name: value for name, value in query.items() if name not in {"after", "sort"} and value}
    return {
        name: Link(
            label=label,
            address=f"?{urlencode(kept | ({'sort': name} if name != NEWEST else {}))}",
            is_current=name == order,
        )
        for name, label in _SORTED.items()
    }


#: Labels of the sortable columns.
_SORTED = {
    "activity": "Last activity",
    "turns": "Turns",
    "last": "Last prompt",
    "peak": "Peak",
    "cost": "Cost",
}


def _query(query: QueryDict, *, after: str | None, without: Sequence[str] = ()) -> str:
    """Return the query string with another page cursor and without empty fields."""
    pairs = [(k, v) for k, v in query.items() if k not in {"after", *without} and v]
    return urlencode([*pairs, *([("after", after)] if after else [])])
