"""Saved views of the session list and of trends."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_plus

from accounts.models import Project
from redaction import redact
from sessions.models import SavedView
from sessions.selectors.redaction import redaction_of

#: Maximum number of views per user, project and page.
MAX_VIEWS = 50


class SecretInView(Exception):
    """The name or the filter contains a secret."""


class TooManyViews(Exception):
    """The user has reached the maximum number of views."""


def view_save(
    *, project: Project, user: Any, name: str, query: str, page: str = SavedView.Page.SESSIONS
) -> SavedView:
    """Save the query under a name, replacing an existing view. Raises `TooManyViews` or `SecretInView`."""
    if redact([name, unquote_plus(query)], redaction=redaction_of(project))[1]:
        raise SecretInView
    own = SavedView.objects.filter(project=project, user=user, page=page)
    if not own.filter(name=name).exists() and own.count() >= MAX_VIEWS:
        raise TooManyViews
    view, _ = SavedView.objects.update_or_create(
        project=project, user=user, page=page, name=name, defaults={"query": query}
    )
    return view


def view_delete(*, project: Project, user: Any, id: int) -> bool:
    """Delete a view of the user. Return False if there is none."""
    deleted, _ = SavedView.objects.filter(project=project, user=user, pk=id).delete()
    return bool(deleted)
