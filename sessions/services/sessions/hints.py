"""Remember which hints a user has dismissed."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User

from sessions.models import DismissedHint


def hints_dismiss(*, user: User, hints: Sequence[str]) -> None:
    rows = [DismissedHint(user=user, hint=hint) for hint in hints]
    DismissedHint.objects.bulk_create(rows, ignore_conflicts=True)


def hints_restore(*, user: User) -> None:
    DismissedHint.objects.filter(user=user).delete()
