"""Cost budgets per day, week or month, and the recipients of their alerts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.validators import validate_email
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import Project
from sessions.models import BudgetAlert
from sessions.models.spending import Period
from sessions.pages.access import Viewer, actor_of, owner_of
from sessions.pages.settings.common import PlainForm, sent_by_owner, settings_page
from sessions.selectors.days import is_zone
from sessions.selectors.lists.sessions import sessions_facets, sessions_tags
from sessions.selectors.spending import budgets_spent, scope_of
from sessions.services.spending.cost_budgets import (
    MOST_BUDGETS,
    TooManyBudgets,
    budget_delete,
    budget_set,
)

_SHOWN_ALERTS = 20
_MAX_EMAILS = 10

_PERIODS = ((Period.DAY, "Day"), (Period.WEEK, "Week"), (Period.MONTH, "Month"))


#: The value of the field for the whole project.
_PROJECT = "project:"


class BudgetForm(PlainForm):
    scope = forms.ChoiceField(label="Applies to", initial=_PROJECT)
    period = forms.ChoiceField(label="Period", choices=_PERIODS, initial=Period.MONTH)
    dollars = forms.DecimalField(
        label="Limit (US dollars)",
        min_value=Decimal("0.01"),
        max_value=Decimal(100_000_000),
        decimal_places=2,
        error_messages={"min_value": "Enter an amount of at least $0.01."},
    )
    time_zone = forms.CharField(
        label="Time zone",
        max_length=64,
        initial="UTC",
        help_text="For example, Europe/Berlin. Weeks start on Monday.",
    )
    emails = forms.CharField(
        label="Email recipients",
        required=False,
        max_length=1_000,
        help_text="Comma-separated. Webhooks are always notified.",
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes = self.fields["scope"]
        assert isinstance(scopes, forms.ChoiceField)
        scopes.choices = scope_choices(project)

    def clean_time_zone(self) -> str:
        name: str = self.cleaned_data["time_zone"]
        if not is_zone(name):
            raise forms.ValidationError("Unknown time zone. Enter an IANA name, for example, Europe/Berlin.")
        return name

    def clean_emails(self) -> list[str]:
        emails = [email.strip() for email in self.cleaned_data["emails"].split(",") if email.strip()]
        for email in emails:
            validate_email(email)
        if len(emails) > _MAX_EMAILS:
            raise forms.ValidationError(f"Enter at most {_MAX_EMAILS} email addresses.")
        return emails


@require_http_methods(["GET", "HEAD", "POST"])
def project_budgets(request: HttpRequest, slug: str) -> HttpResponse:
    viewer, sent = sent_by_owner(request, slug)
    initial = {"time_zone": request.COOKIES.get("zone") or "UTC"}
    values = None if sent is None else {"scope": _PROJECT, **sent.dict()}
    form = BudgetForm(viewer.project, values, initial=initial)
    if not form.is_valid():
        return _page(request, viewer, form)
    data = form.cleaned_data
    scope, _, scope_value = data["scope"].partition(":")
    try:
        budget_set(
            project=viewer.project,
            period=data["period"],
            limit_microusd=int(data["dollars"] * 1_000_000),
            scope=scope,
            scope_value=scope_value,
            time_zone=data["time_zone"],
            emails=data["emails"],
            actor=actor_of(request),
        )
    except TooManyBudgets:
        form.add_error(None, f"A project has at most {MOST_BUDGETS} budgets. Remove one first.")
        return _page(request, viewer, form)
    messages.success(request, "Budget saved.")
    return redirect("settings_budgets", slug=slug)


@require_POST
def budget_remove(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    viewer = owner_of(request, slug)
    budget = get_object_or_404(viewer.project.cost_budgets.select_related("project"), pk=number)
    budget_delete(budget=budget, actor=actor_of(request))
    messages.success(request, "Budget removed.")
    return redirect("settings_budgets", slug=slug)


def scope_choices(project: Project) -> list[tuple[str, Any]]:
    """Return what a budget can cover: the project, and its known members, agents, models and tags."""
    facets = sessions_facets(project=project)
    members = project.memberships.select_related("user").order_by("user__username")
    groups = {
        "Agent": [(f"agent:{name}", name) for name in facets.agents],
        "Model": [(f"model:{name}", name) for name in facets.models],
        "Tag": [(f"tag:{name}", name) for name in sessions_tags(project=project)],
        "Member": [(f"member:{each.user_id}", each.user.get_username()) for each in members],
    }
    return [(_PROJECT, "Whole project"), *((label, choices) for label, choices in groups.items() if choices)]


def _page(request: HttpRequest, viewer: Viewer, form: BudgetForm) -> HttpResponse:
    alerts = BudgetAlert.objects.filter(budget__project=viewer.project).select_related("budget")
    context: dict[str, Any] = {
        "form": form,
        "budgets": budgets_spent(project_id=viewer.project.pk),
        "alerts": [
            (each, scope_of(each.budget)) for each in alerts.order_by("-starts", "-share")[:_SHOWN_ALERTS]
        ],
        "has_mail": bool(settings.EMAIL_HOST),
    }
    return settings_page(request, viewer, "budgets.html", context)
