"""The figures of a trends page, from the sums to what is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from accounts.models import Project
from accounts.selectors import policy_changes
from sessions.models import AgentSession
from sessions.pages.trends.asked import Asked
from sessions.selectors.trends import Sums, TrendRow
from sessions.selectors.usage import Span

#: Groups that the chart tells apart; the rest is drawn as one.
MOST_SERIES = 8
#: Rows of the table.
MOST_ROWS = 50

_NAMELESS = {
    "agent": "no agent named",
    "model": "no model named",
    "tag": "no tag",
    "member": "nobody: imported, or a key that the server made",
    "session": "–",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One group of the table, with what it used in the other span."""

    key: str
    name: str
    sums: Sums
    before: Sums


def names_of(project: Project, group: str, keys: Iterable[str]) -> Mapping[str, str]:
    """What the keys of a group are called. At most one query."""
    wanted = [key for key in keys if key]
    names = {key: key for key in wanted}
    if group == "member":
        users = User.objects.filter(memberships__project=project, pk__in=map(int, wanted))
        names = dict.fromkeys(wanted, "a member who left")
        names |= {str(user.pk): user.get_username() for user in users}
    elif group == "session":
        rows = AgentSession.objects.filter(project=project, pk__in=map(UUID, wanted))
        names |= {str(row.pk): str(row) for row in rows.only("title", "external_id")}
    return {**names, "": _NAMELESS[group]}


def groups_of(rows: Sequence[TrendRow]) -> dict[str, Sums]:
    """The sums of the whole span by group, the dearest first."""
    groups: dict[str, Sums] = {}
    for row in rows:
        groups[row.key] = groups.get(row.key, Sums()) + row.sums
    return dict(sorted(groups.items(), key=lambda item: (-item[1].cost_microusd, -item[1].tokens, item[0])))


def buckets_of(span: Span, bucket: str) -> list[date]:
    """The first days of all buckets of the span, also of those in which nothing was used."""
    return sorted({_begin(span.first + timedelta(days=day), bucket) for day in range(span.days)})


def _begin(day: date, bucket: str) -> date:
    if bucket == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if bucket == "month" else day


def value_of(sums: Sums, measure: str) -> int:
    return {"cost": sums.cost_microusd, "tokens": sums.tokens, "saved": sums.saved_microusd}[measure]


def series_json(project: Project, rows: Sequence[TrendRow], asked: Asked) -> dict[str, Any]:
    """What the chart draws: a column for each bucket, a row for each of the largest groups."""
    buckets = buckets_of(asked.wanted.span, asked.bucket)
    place = {bucket: index for index, bucket in enumerate(buckets)}
    largest = _largest(rows, asked.measure)
    names = names_of(project, asked.group, largest)
    values = {key: [0] * len(buckets) for key in largest}
    others = [0] * len(buckets)
    for row in rows:
        if (index := place.get(row.bucket)) is not None:
            values.get(row.key, others)[index] += value_of(row.sums, asked.measure)
    series = [{"name": names[key], "values": values[key]} for key in largest]
    if any(others):
        series.append({"name": "all others", "values": others})
    return {
        "bucket": asked.bucket,
        "buckets": buckets,
        "measure": asked.measure,
        "unit": "tokens" if asked.measure == "tokens" else "microusd",
        "series": series,
        "marks": _policy_marks(project, place, asked),
    }


def _policy_marks(project: Project, place: Mapping[date, int], asked: Asked) -> list[dict[str, Any]]:
    """Where the project's policy was changed: what is behind a mark began under another one."""
    span = asked.wanted.span
    since, until = span.bounds()
    return [
        {"index": place[bucket], "text": f"policy: {change.before} → {change.after}"}
        for change in policy_changes(project_id=project.pk, since=since, until=until)
        if (bucket := _begin(change.at.astimezone(span.zone).date(), asked.bucket)) in place
    ]


def _largest(rows: Sequence[TrendRow], measure: str) -> list[str]:
    totals = {key: value_of(sums, measure) for key, sums in groups_of(rows).items()}
    ranked = sorted((key for key, value in totals.items() if value), key=lambda key: -totals[key])
    return ranked if len(ranked) <= MOST_SERIES else ranked[: MOST_SERIES - 1]
