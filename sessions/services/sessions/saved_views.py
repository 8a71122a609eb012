"""Saved views of the session list."""

from __future__ import annotations

from typing import Any

from accounts.models import Project
from sessions.models import SavedView

#: Maximum number of views per user and project.
MAX_VIEWS = 50


class TooManyViews(Exception):
    """The user has reached the maximum number of views."""


def view_save(*, project: Project, user: Any, name: str, query: str) -> SavedView:
    """Save the query under a name, replacing an existing view. Raises `TooManyViews`."""
    own = SavedView.objects.filter(project=project, user=user)
    if not own.filter(name=name).exists() and own.count() >= MAX_VIEWS:
        raise TooManyViews
    view, _ = SavedView.objects.update_or_create(
        project=project, user=user, name=name, defaults={"query": query}
    )
    return view


def view_delete(*, project: Project, user: Any, id: int) -> bool:
    """Delete a view of the user. Return False if there is none."""
    deleted, _ = SavedView.objects.filter(project=project, user=user, pk=id).delete()
    return bool(deleted)
