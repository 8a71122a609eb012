"""Agreed prices: what the project pays for a model, where it is not what the public table says."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from pricing.custom import CustomPrice
from sessions.pages.access import Viewer, viewer_of
from sessions.pages.settings.frame import PlainForm, owner_of, settings_page, user_of
from sessions.selectors.custom_prices import custom_prices
from sessions.services.spending.custom_prices import MOST, TooManyPrices, price_remove, price_set

_DAY = forms.DateInput(attrs={"type": "date"})
_RATES = ("uncached", "cache_read", "cache_write", "output")


def _rate(label: str) -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        min_value=Decimal(0),
        max_value=Decimal(10_000),
        decimal_places=6,
        help_text="$ a million tokens",
    )


class PriceForm(PlainForm):
    model = forms.CharField(max_length=200, help_text="Exactly as agents name it.")
    first = forms.DateField(label="From", widget=_DAY, help_text="A day in UTC.")
    last = forms.DateField(label="To", required=False, widget=_DAY, help_text="Empty: until further notice.")
    uncached = _rate("Input")
    cache_read = _rate("Read from the cache")
    cache_write = _rate("Written to the cache")
    output = _rate("Output")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        first, last = data.get("first"), data.get("last")
        if first and last and last < first:
            self.add_error("last", "The last day is before the first.")
        return data

    def price(self) -> CustomPrice:
        data = self.cleaned_data
        return CustomPrice(
            model=data["model"].strip().lower(),
            first=data["first"],
            last=data["last"],
            **{name: int(data[name] * 1_000_000) for name in _RATES},
        )


@require_http_methods(["GET", "HEAD", "POST"])
def project_prices(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method != "POST":
        return _page(request, viewer_of(request, slug), PriceForm())
    viewer = owner_of(request, slug)
    form = PriceForm(request.POST)
    if not (form.is_valid() and _save_price(request, viewer, form)):
        return _page(request, viewer, form, status=422)
    new = form.price()
    messages.success(request, f"The price of {new.model} holds from {new.first} on.")
    return redirect("settings_prices", slug=slug)


def _save_price(request: HttpRequest, viewer: Viewer, form: PriceForm) -> bool:
    try:
        price_set(project=viewer.project, price=form.price(), user=user_of(request))
    except TooManyPrices:
        form.add_error(None, f"At most {MOST} prices.")
        return False
    return True


class RemovedForm(forms.Form):
    """The price to take away, by what it is known by."""

    model = forms.CharField()
    first = forms.DateField()


@require_POST
def project_price_remove(request: HttpRequest, slug: str) -> HttpResponse:
    viewer, form = owner_of(request, slug), RemovedForm(request.POST)
    known = form.is_valid() and price_remove(
        project=viewer.project, user=user_of(request), **form.cleaned_data
    )
    if not known:
        raise Http404("no such price")
    messages.success(request, "The price is taken away.")
    return redirect("settings_prices", slug=slug)


def _page(request: HttpRequest, viewer: Viewer, form: PriceForm, *, status: int = 200) -> HttpResponse:
    prices = [(one, [getattr(one, name) for name in _RATES]) for one in custom_prices(viewer.project)]
    return settings_page(request, viewer, "prices.html", {"form": form, "prices": prices}, status=status)
