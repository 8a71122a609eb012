"""The parameters of the trends pages, read from the query string."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django import forms
from django.http import HttpRequest

from sessions.pages.text import visible
from sessions.pages.zones import zone_of
from sessions.selectors.days import BUCKETS, Span, is_zone, span_before
from sessions.selectors.trends.groups import GROUPS
from sessions.selectors.trends.sums import TrendQuery

#: The measures that the chart can show and their labels.
MEASURES = {"cost": "Cost", "tokens": "Tokens", "saved": "Gross savings"}

#: The properties by which groups can be divided further.
SPLITS = tuple(name for name in GROUPS if name != "session")

_DEFAULT_DAYS = 30
#: Maximum days of a period, and of one that is shown by day: more columns cannot be distinguished.
_MAX_DAYS, _MAX_SHOWN_DAYS = 3_660, 732
_FIRST, _LAST = date(2000, 1, 1), date(2999, 12, 31)

_DAY = forms.DateInput(attrs={"type": "date"})


def _choices(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, name.capitalize()) for name in names]


class TrendsForm(forms.Form):
    """All fields are optional. An invalid value falls back to the default, and its error is shown.

    Unknown parameters are reported, because a misspelled filter would show the figures of everything.
    """

    first = forms.DateField(required=False, widget=_DAY, label="From")
    last = forms.DateField(required=False, widget=_DAY, label="To")
    days = forms.IntegerField(required=False, min_value=1, max_value=_MAX_DAYS, label="Days")
    bucket = forms.ChoiceField(required=False, choices=_choices(BUCKETS), label="Interval")
    group = forms.ChoiceField(required=False, choices=_choices(GROUPS), label="Group by")
    split = forms.ChoiceField(required=False, choices=_choices(SPLITS), label="Then by")
    measure = forms.ChoiceField(required=False, choices=list(MEASURES.items()), label="Measure")
    other = forms.DateField(required=False, widget=_DAY, label="Compare to period starting")
    agent = forms.CharField(required=False, max_length=100)
    model = forms.CharField(required=False, max_length=200)
    tag = forms.CharField(required=False, max_length=100)
    member = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    sample = forms.ChoiceField(required=False, choices=[("exclude", "Exclude")], label="Sample data")
    zone = forms.CharField(required=False, label="Time zone")

    def clean_zone(self) -> str:
        name: str = self.cleaned_data["zone"]
        if name and not is_zone(name):
            raise forms.ValidationError("Unknown time zone. Example: Europe/Berlin.")
        return name

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for name in ("first", "last", "other"):
            if (day := data.get(name)) and not _FIRST <= day <= _LAST:
                self.add_error(name, "Choose a date between the years 2000 and 2999.")
        if unknown := sorted(set(self.data) - set(self.fields)):
            self.add_error(None, f"Unknown parameters are ignored: {visible(', '.join(unknown))[:200]}.")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """`current` is the requested period; `previous` is the one of equal length that it is compared to.

    `other` is the first day of `previous` if the viewer chose it; None if it directly precedes `current`.
    `days` is the length of a period that always ends today, as in saved presets; None for fixed dates.
    `zone` is the name of the time zone that the URL sets, or "".
    """

    current: TrendQuery
    previous: TrendQuery
    other: date | None
    days: int | None
    bucket: str
    group: str
    split: str
    measure: str
    zone: str

    @property
    def grouping(self) -> str:
        """The grouping of the figures, as the selectors take it: `agent`, or `agent,model`."""
        return f"{self.group},{self.split}" if self.split else self.group

    @property
    def grouping_label(self) -> str:
        return f"{self.group} and {self.split}" if self.split else self.group

    @property
    def measure_label(self) -> str:
        return MEASURES[self.measure]

    @property
    def filters(self) -> dict[str, str]:
        return self.current.filters

    def query_string(self, **changes: str) -> str:
        """Return the query string for these parameters with changes; "" removes a parameter."""
        span = self.current.span
        values = {
            **_period(span, self.days if "first" not in changes else None),
            "bucket": self.bucket,
            "group": self.group,
            "split": self.split,
            "measure": self.measure,
            "other": self.other.isoformat() if self.other else "",
            "zone": self.zone,
            **self.filters,
            **changes,
        }
        return urlencode({name: value for name, value in values.items() if value})


def parameters_of(request: HttpRequest) -> tuple[Parameters, TrendsForm]:
    """Return the parameters of a request, and the form with its errors."""
    form = TrendsForm(request.GET)
    form.is_valid()
    data = form.cleaned_data
    span = _span(data, zone_of(request))
    if (asked := data.get("first")) and asked < span.first and (data.get("last") or span.last) > asked:
        form.add_error("first", f"Showing only the last {_MAX_DAYS} days of this period, the maximum.")
    current = TrendQuery(
        span=span,
        agent=data.get("agent", ""),
        model=data.get("model", ""),
        tag=data.get("tag", ""),
        member=data.get("member"),
        sample=data.get("sample", ""),
    )
    previous = span_before(span)
    if other := data.get("other"):
        end = min(other + timedelta(days=span.days - 1), _LAST + timedelta(days=1))
        previous = replace(span, first=other, last=end)
    group, split = data.get("group") or "agent", data.get("split") or ""
    parameters = Parameters(
        current=current,
        previous=replace(current, span=previous),
        other=data.get("other"),
        days=data.get("days") if not (data.get("first") or data.get("last")) else None,
        bucket=_chosen_bucket(form, span),
        group=group,
        split=split if split != group else "",
        measure=data.get("measure") or "cost",
        zone=data.get("zone") or "",
    )
    return parameters, form


def presets(today: date, begin: date | None = None) -> list[tuple[str, date, date]]:
    """Return the preset periods: label, first day, last day. `begin` is the day of the first usage."""
    monday = today - timedelta(days=today.weekday())
    month = today.replace(day=1)
    end_of_last_month = month - timedelta(days=1)
    return [
        ("This week", monday, today),
        ("Last week", monday - timedelta(days=7), monday - timedelta(days=1)),
        ("Last 30 days", today - timedelta(days=29), today),
        ("This month", month, today),
        ("Last month", end_of_last_month.replace(day=1), end_of_last_month),
        ("Last 90 days", today - timedelta(days=89), today),
        ("This year", today.replace(month=1, day=1), today),
        *([("All time", min(begin, today), today)] if begin else []),
    ]


def periods(parameters: Parameters, begin: datetime | None = None) -> list[tuple[str, str, bool]]:
    """Return the preset periods: label, query string and whether it is the current period."""
    span = parameters.current.span
    return [
        (
            name,
            parameters.query_string(first=first.isoformat(), last=last.isoformat(), bucket="", other=""),
            (first, last) == (span.first, span.last),
        )
        for name, first, last in presets(
            today_of(span.zone), begin.astimezone(span.zone).date() if begin else None
        )
    ]


def today_of(zone: ZoneInfo) -> date:
    return datetime.now(zone).date()


def _period(span: Span, days: int | None) -> dict[str, str]:
    """Return the parameters of a period: its number of days until today, or its dates."""
    return {"days": str(days)} if days else {"first": span.first.isoformat(), "last": span.last.isoformat()}


def _span(data: dict[str, Any], zone: ZoneInfo) -> Span:
    last = data.get("last") or today_of(zone)
    days = data.get("days") or _DEFAULT_DAYS
    first = data.get("first") or max(last - timedelta(days=days - 1), _FIRST)
    if first > last:
        first, last = last, first
    return Span(first=max(first, last - timedelta(days=_MAX_DAYS - 1)), last=last, zone=zone)


def _chosen_bucket(form: TrendsForm, span: Span) -> str:
    chosen: str = form.cleaned_data.get("bucket") or ""
    if chosen == "day" and span.days > _MAX_SHOWN_DAYS:
        form.add_error("bucket", "Days are shown for up to two years. Showing months.")
        chosen = ""
    return chosen or ("day" if span.days <= 62 else "week" if span.days <= 366 else "month")
