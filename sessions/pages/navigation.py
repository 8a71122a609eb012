"""The main navigation."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest
from django.urls import reverse

from accounts.models import Project
from sessions.pages.links import Link

#: Label and URL names of each entry: the first is the link target, pages of all of them highlight the entry.
ENTRIES: Sequence[tuple[str, tuple[str, ...]]] = (
    ("Sessions", ("sessions", "session")),
    ("Search", ("search",)),
    ("Trends", ("trends",)),
    ("Tools", ("tools",)),
    ("Lab", ("lab",)),
    ("Memory", ("memory",)),
    ("Replay", ("replay",)),
    ("Connect", ("connect", "imports")),
    ("Settings", ("settings",)),
)


def navigation_entries(request: HttpRequest, project: Project) -> list[Link]:
    """Return the navigation of a project. Runs no queries."""
    match = request.resolver_match
    name = (match.url_name or "") if match else ""
    return [
        Link(label=label, address=reverse(names[0], args=[project.slug]), is_current=_is_within(name, names))
        for label, names in ENTRIES
    ]


def _is_within(name: str, names: Sequence[str]) -> bool:
    """Match a URL name by prefix: `session_chart` belongs to `session`."""
    return any(name == prefix or name.startswith(f"{prefix}_") for prefix in names)
