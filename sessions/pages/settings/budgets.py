"""Budgets of money: what may be spent in a day, a week, a month, and who is told."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.validators import validate_email
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from sessions.models import BudgetAlert
from sessions.models.spending import Period
from sessions.pages.access import Viewer, viewer_of
from sessions.pages.settings.frame import PlainForm, owner_of, settings_page, user_of
from sessions.selectors.spending import budgets_spent
from sessions.services.spending.budgets import budget_delete, budget_set

_SHOWN_ALERTS = 20
_MOST_EMAILS = 10


class BudgetForm(PlainForm):
    period = forms.ChoiceField(label="In", choices=Period.choices, initial=Period.MONTH)
    dollars = forms.DecimalField(
        label="At most (US dollars)",
        min_value=Decimal("0.01"),
        max_value=Decimal(100_000_000),
        decimal_places=2,
    )
    time_zone = forms.CharField(
        label="Time zone of the period",
        max_length=64,
        initial="UTC",
        help_text="As Europe/Berlin. Weeks begin on Monday.",
    )
    emails = forms.CharField(
        label="E-mails to",
        required=False,
        max_length=1_000,
        help_text="By commas. Webhooks are told in any case, and so is this page.",
    )

    def clean_time_zone(self) -> str:
        name: str = self.cleaned_data["time_zone"]
        if name not in available_timezones():
            raise forms.ValidationError("Write a name of the IANA database, as Europe/Berlin.")
        return name

    def clean_emails(self) -> list[str]:
        found = [email.strip() for email in self.cleaned_data["emails"].split(",") if email.strip()]
        for email in found:
            validate_email(email)
        if len(found) > _MOST_EMAILS:
            raise forms.ValidationError(f"At most {_MOST_EMAILS}.")
        return found


@require_http_methods(["GET", "HEAD", "POST"])
def project_budgets(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method != "POST":
        initial = {"time_zone": request.COOKIES.get("zone") or "UTC"}
        return _page(request, viewer_of(request, slug), BudgetForm(initial=initial))
    viewer = owner_of(request, slug)
    form = BudgetForm(request.POST)
    if not form.is_valid():
        return _page(request, viewer, form, status=422)
    data = form.cleaned_data
    budget_set(
        project=viewer.project,
        period=data["period"],
        limit_microusd=int(data["dollars"] * 1_000_000),
        time_zone=data["time_zone"],
        emails=data["emails"],
        user=user_of(request),
    )
    messages.success(request, "The budget is set.")
    return redirect("settings_budgets", slug=slug)


@require_POST
def budget_remove(request: HttpRequest, slug: str, period: str) -> HttpResponse:
    viewer = owner_of(request, slug)
    budget = viewer.project.cost_budgets.select_related("project").filter(period=period).first()
    if budget is None:
        raise Http404("no such budget")
    budget_delete(budget=budget, user=user_of(request))
    messages.success(request, "The budget is taken away.")
    return redirect("settings_budgets", slug=slug)


def _page(request: HttpRequest, viewer: Viewer, form: BudgetForm, *, status: int = 200) -> HttpResponse:
    alerts = BudgetAlert.objects.filter(budget__project=viewer.project).select_related("budget")
    context: dict[str, Any] = {
        "form": form,
        "budgets": budgets_spent(project_id=viewer.project.pk),
        "alerts": alerts.order_by("-starts", "-share")[:_SHOWN_ALERTS],
        "has_mail": bool(settings.EMAIL_HOST),
    }
    return settings_page(request, viewer, "budgets.html", context, status=status)
