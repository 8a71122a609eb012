"""The data of the trends chart: buckets, groups and their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from accounts.models import Project
from accounts.selectors import policy_changes
from sessions.models import AgentSession
from sessions.pages.trends.parameters import Parameters
from sessions.selectors.days import bucket_start, buckets_of
from sessions.selectors.trends.groups import SEPARATOR, group_names
from sessions.selectors.trends.prompt_sizes import PromptSizes
from sessions.selectors.trends.sums import trend_values

#: The number of series in the chart. The last one combines all smaller groups.
MAX_SERIES = 8

_UNNAMED = {
    "agent": "No agent",
    "model": "No model",
    "tag": "No tag",
    "member": "Unattributed (imported or server key)",
    "session": "–",
}


def names_of(project: Project, group: str, keys: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the display names of a grouping's keys: one, or two. Takes at most two queries."""
    parts = {key: key.split(SEPARATOR) for key in keys}
    named = [
        _names(project, each, {part[at] for part in parts.values()})
        for at, each in enumerate(group_names(group))
    ]
    return {
        key: [names[each] for names, each in zip(named, part, strict=True)] for key, part in parts.items()
    }


def joined(names: Sequence[str]) -> str:
    return " · ".join(names)


def _names(project: Project, group: str, keys: Iterable[str]) -> Mapping[str, str]:
    known = [key for key in keys if key]
    names = {key: key for key in known}
    if group == "member":
        users = User.objects.filter(memberships__project=project, pk__in=map(int, known))
        names = dict.fromkeys(known, "Former member")
        names |= {str(user.pk): user.get_username() for user in users}
    elif group == "session":
        rows = AgentSession.objects.filter(project=project, pk__in=map(UUID, known))
        names |= {str(row.pk): str(row) for row in rows.only("title", "external_id")}
    return {**names, "": _UNNAMED[group]}


def series_json(project: Project, parameters: Parameters) -> dict[str, Any]:
    """Return the chart's data: one series per large group, with one value per bucket.

    Tags have no total (`has_total`): a session with several counts toward each of them.
    """
    buckets = buckets_of(parameters.current.span, parameters.bucket)
    positions = {bucket: index for index, bucket in enumerate(buckets)}
    rows = trend_values(
        project_id=project.pk,
        query=parameters.current,
        bucket=parameters.bucket,
        group=parameters.grouping,
        measure=parameters.measure,
    )
    largest = _largest(rows)
    names = names_of(project, parameters.grouping, largest)
    values = {key: [0] * len(buckets) for key in largest}
    others = [0] * len(buckets)
    for bucket, key, value in rows:
        if (index := positions.get(bucket)) is not None:
            values.get(key, others)[index] += value
    series = [{"name": joined(names[key]), "values": values[key]} for key in largest]
    if any(others):
        series.append({"name": "All others", "values": others})
    return {
        "bucket": parameters.bucket,
        "buckets": buckets,
        "measure": parameters.measure,
        "unit": "tokens" if parameters.measure == "tokens" else "microusd",
        "series": series,
        "has_total": "tag" not in group_names(parameters.grouping),
        "marks": _policy_marks(project, positions, parameters),
    }


def prompt_sizes_json(sizes: Sequence[PromptSizes], parameters: Parameters) -> dict[str, Any]:
    """Return the data for the chart of prompt sizes. Values are None in buckets without calls."""
    buckets = buckets_of(parameters.current.span, parameters.bucket)
    found = {each.bucket: each for each in sizes}
    return {
        "bucket": parameters.bucket,
        "buckets": [day.isoformat() for day in buckets],
        "series": [
            {
                "name": name,
                "values": [getattr(found[day], name) if day in found else None for day in buckets],
            }
            for name in ("p50", "p90", "p99")
        ],
    }


def _policy_marks(
    project: Project, positions: Mapping[date, int], parameters: Parameters
) -> list[dict[str, Any]]:
    """Return the policy changes as marks. Sessions after a mark started under a different policy."""
    span = parameters.current.span
    since, until = span.bounds()
    return [
        {"index": positions[bucket], "text": f"Policy: {change.before} → {change.after}"}
        for change in policy_changes(project_id=project.pk, since=since, until=until)
        if (bucket := bucket_start(change.at.astimezone(span.zone).date(), parameters.bucket)) in positions
    ]


def _largest(rows: Sequence[tuple[date, str, int]]) -> list[str]:
    """Return the keys of the groups to draw, the largest first."""
    totals: Counter[str] = Counter()
    for _, key, value in rows:
        totals[key] += value
    keys = sorted(totals, key=lambda key: (-totals[key], key))
    return keys if len(keys) <= MAX_SERIES else keys[: MAX_SERIES - 1]
