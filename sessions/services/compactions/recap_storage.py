"""How many recaps of a session are kept in full."""

from __future__ import annotations

from uuid import UUID

from sessions.models import Recap
from sessions.selectors.recaps import recaps_of

#: One for the next recap to continue, and one to return to if that is reverted.
_FULL_RECAPS = 2


def recaps_trim(session_id: UUID) -> None:
    """Drop the full body of the recap that a newer one has made obsolete. Its text remains."""
    full = recaps_of(session_id).filter(body__isnull=False, lines__isnull=False)
    obsolete = full.values("pk")[_FULL_RECAPS : _FULL_RECAPS + 1]
    Recap.objects.filter(pk__in=obsolete).update(body=None)
