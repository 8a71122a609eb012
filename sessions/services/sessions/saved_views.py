"""Views of the list that a person saves under a name."""

from __future__ import annotations

from typing import Any

from accounts.models import Project
from sessions.models import SavedView

#: Views of one person in one project.
MOST = 50


class TooManyViews(Exception):
    """The person has as many views as there may be."""


def view_save(*, project: Project, user: Any, name: str, query: str) -> SavedView:
    """Saves the query under the name, in place of the one that had it. Raises `TooManyViews`."""
    own = SavedView.objects.filter(project=project, user=user)
    if not own.filter(name=name).exists() and own.count() >= MOST:
        raise TooManyViews
    view, _ = SavedView.objects.update_or_create(
        project=project, user=user, name=name, defaults={"query": query}
    )
    return view


def view_delete(*, project: Project, user: Any, id: int) -> bool:
    """Deletes a view of the user's own; False where it is none."""
    deleted, _ = SavedView.objects.filter(project=project, user=user, pk=id).delete()
    return bool(deleted)
