"""The main navigation: one line for each place that every page leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from accounts.models import Project

#: What it is called, and the names of the addresses that belong to it: the first is where the link leads.
PLACES: Sequence[tuple[str, tuple[str, ...]]] = (
    ("Sessions", ("sessions", "session")),
    ("Trends", ("trends",)),
    ("Lab", ("lab",)),
    ("Memory", ("memory",)),
    ("Replay", ("replay",)),
    ("Settings", ("settings",)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A link of the navigation; `here` where the page that is looked at belongs to it."""

    label: str
    address: str
    here: bool


def places_of(request: HttpRequest, project: Project) -> list[Place]:
    """The places of a project, as a page of it shows them. Reads nothing."""
    match = request.resolver_match
    name = (match.url_name or "") if match else ""
    return [
        Place(label=label, address=reverse(names[0], args=[project.slug]), here=_within(name, names))
        for label, names in PLACES
    ]


def _within(name: str, names: Sequence[str]) -> bool:
    """An address belongs to a place by its name: `session_chart` belongs to `session`."""
    return any(name == own or name.startswith(f"{own}_") for own in names)
