"""Custom prices: what the project pays for a model instead of the public price."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.formats import date_format
from django.views.decorators.http import require_http_methods, require_POST

from pricing.custom import CustomPrice
from sessions.pages.access import Viewer, actor_of, owner_of
from sessions.pages.settings.common import PlainForm, sent_by_owner, settings_page
from sessions.selectors.custom_prices import UNPRICED_DAYS, custom_prices, models_unpriced
from sessions.services.spending.custom_prices import (
    MAX_PRICES,
    TooManyPrices,
    custom_price_delete,
    custom_price_set,
)

_DAY = forms.DateInput(attrs={"type": "date"})
_RATES = ("uncached", "cache_read", "cache_write", "output")


def _rate(label: str) -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        min_value=Decimal(0),
        max_value=Decimal(10_000),
        decimal_places=6,
        help_text="$ per million tokens",
    )


class PriceForm(PlainForm):
    model = forms.CharField(max_length=200, help_text="The exact name that agents report.")
    first = forms.DateField(label="First day", widget=_DAY, help_text="In UTC.")
    last = forms.DateField(
        label="Last day", required=False, widget=_DAY, help_text="Leave blank for no end date."
    )
    uncached = _rate("Input")
    cache_read = _rate("Cache read")
    cache_write = _rate("Cache write")
    output = _rate("Output")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        first, last = data.get("first"), data.get("last")
        if first and last and last < first:
            self.add_error("last", "The last day must not be before the first day.")
        return data

    def price(self) -> CustomPrice:
        data = self.cleaned_data
        return CustomPrice(
            model=data["model"].lower(),
            first=data["first"],
            last=data["last"],
            **{name: int(data[name] * 1_000_000) for name in _RATES},
        )


@require_http_methods(["GET", "HEAD", "POST"])
def project_prices(request: HttpRequest, slug: str) -> HttpResponse:
    viewer, data = sent_by_owner(request, slug)
    form = PriceForm(data, initial={"model": request.GET.get("model", "")[:200]})
    if not (form.is_valid() and _save_price(request, viewer, form)):
        return _page(request, viewer, form)
    new = form.price()
    messages.success(
        request, f"Price of {new.model} saved. It applies from {date_format(new.first, 'M j, Y')}."
    )
    return redirect("settings_prices", slug=slug)


def _save_price(request: HttpRequest, viewer: Viewer, form: PriceForm) -> bool:
    try:
        custom_price_set(project=viewer.project, price=form.price(), actor=actor_of(request))
    except TooManyPrices:
        form.add_error(None, f"A project can have at most {MAX_PRICES} custom prices. Remove one first.")
        return False
    return True


class PriceKeyForm(forms.Form):
    """Identifies the price to remove."""

    model = forms.CharField()
    first = forms.DateField()


@require_POST
def project_price_remove(request: HttpRequest, slug: str) -> HttpResponse:
    viewer, form = owner_of(request, slug), PriceKeyForm(request.POST)
    removed = form.is_valid() and custom_price_delete(
        project=viewer.project, actor=actor_of(request), **form.cleaned_data
    )
    if not removed:
        raise Http404("Price not found")
    messages.success(request, "Price removed.")
    return redirect("settings_prices", slug=slug)


def _page(request: HttpRequest, viewer: Viewer, form: PriceForm) -> HttpResponse:
    prices = [(one, [getattr(one, name) for name in _RATES]) for one in custom_prices(viewer.project)]
    context = {
        "form": form,
        "prices": prices,
        "unpriced": models_unpriced(viewer.project),
        "unpriced_days": UNPRICED_DAYS,
    }
    return settings_page(request, viewer, "prices.html", context)
