"""What a trends page is asked for, as it stands in the address."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.http import HttpRequest

from sessions.selectors.trends import BUCKETS, GROUPS, TrendQuery
from sessions.selectors.usage import Span

#: What the chart can show.
MEASURES = {"cost": "cost", "tokens": "tokens", "saved": "saved"}

_DEFAULT_DAYS = 30
#: Two leap years: longer spans would draw more than the eye tells apart.
_LONGEST_DAYS = 732
_FIRST, _LAST = date(2000, 1, 1), date(2999, 12, 31)

_DAY = forms.DateInput(attrs={"type": "date"})


class TrendsForm(forms.Form):
    """A field that cannot be read is left at its default, and its error is told."""

    first = forms.DateField(required=False, widget=_DAY, label="From")
    last = forms.DateField(required=False, widget=_DAY, label="To")
    bucket = forms.ChoiceField(required=False, choices=[(name, name) for name in BUCKETS], label="By")
    group = forms.ChoiceField(required=False, choices=[(name, name) for name in GROUPS], label="Split by")
    measure = forms.ChoiceField(required=False, choices=list(MEASURES.items()), label="Show")
    other = forms.DateField(required=False, widget=_DAY, label="Compare with the span from")
    agent = forms.CharField(required=False, max_length=100)
    model = forms.CharField(required=False, max_length=200)
    tag = forms.CharField(required=False, max_length=100)
    member = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for name in ("first", "last", "other"):
            if (day := data.get(name)) and not _FIRST <= day <= _LAST:
                self.add_error(name, "Choose a day between the years 2000 and 2999.")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`before` is the span of the same length that the figures are compared with."""

    wanted: TrendQuery
    before: TrendQuery
    bucket: str
    group: str
    measure: str

    @property
    def filters(self) -> dict[str, str]:
        """What narrows the figures, by name."""
        names = ("agent", "model", "tag", "member")
        return {name: str(value) for name in names if (value := getattr(self.wanted, name))}

    def query(self, **changes: str) -> str:
        """The address's query that asks for this, with changes; "" takes a filter away."""
        span = self.wanted.span
        told = {
            "first": span.first.isoformat(),
            "last": span.last.isoformat(),
            "bucket": self.bucket,
            "group": self.group,
            "measure": self.measure,
            "other": self.before.span.first.isoformat(),
            **self.filters,
            **changes,
        }
        return urlencode({name: value for name, value in told.items() if value})


def zone_of(request: HttpRequest) -> ZoneInfo:
    """The viewer's zone, which the browser tells by a cookie; UTC until it has."""
    name = request.GET.get("zone") or request.COOKIES.get("zone") or "UTC"
    return ZoneInfo(name if name in _zones() else "UTC")


def asked_of(request: HttpRequest) -> tuple[Asked, TrendsForm]:
    form = TrendsForm(request.GET)
    form.is_valid()
    data = form.cleaned_data
    span = _span(data, zone_of(request))
    wanted = TrendQuery(
        span=span,
        agent=_plain(data.get("agent")),
        model=_plain(data.get("model")),
        tag=_plain(data.get("tag")),
        member=data.get("member"),
    )
    first = data.get("other") or max(span.first - timedelta(days=span.days), _FIRST)
    before = replace(
        span, first=first, last=min(first + timedelta(days=span.days - 1), _LAST + timedelta(days=1))
    )
    asked = Asked(
        wanted=wanted,
        before=replace(wanted, span=before),
        bucket=data.get("bucket") or _bucket(span),
        group=data.get("group") or "agent",
        measure=data.get("measure") or "cost",
    )
    return asked, form


def presets(today: date) -> list[tuple[str, date, date]]:
    """Spans that people ask for, with their first and last day."""
    monday = today - timedelta(days=today.weekday())
    month = today.replace(day=1)
    before = month - timedelta(days=1)
    return [
        ("this week", monday, today),
        ("last week", monday - timedelta(days=7), monday - timedelta(days=1)),
        ("30 days", today - timedelta(days=29), today),
        ("this month", month, today),
        ("last month", before.replace(day=1), before),
        ("90 days", today - timedelta(days=89), today),
    ]


def today_of(zone: ZoneInfo) -> date:
    return datetime.now(UTC).astimezone(zone).date()


def _span(data: dict[str, Any], zone: ZoneInfo) -> Span:
    last = data.get("last") or today_of(zone)
    first = data.get("first") or max(last - timedelta(days=_DEFAULT_DAYS - 1), _FIRST)
    if first > last:
        first, last = last, first
    return Span(first=max(first, last - timedelta(days=_LONGEST_DAYS - 1)), last=last, zone=zone)


def _bucket(span: Span) -> str:
    return "day" if span.days <= 62 else "week" if span.days <= 366 else "month"


def _plain(text: str | None) -> str:
    return (text or "").strip()


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
