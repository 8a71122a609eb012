"""The hints that a user has dismissed."""

from __future__ import annotations

from django.contrib.auth.models import User

from sessions.models import DismissedHint


def hints_dismissed(user: User) -> frozenset[str]:
    return frozenset(DismissedHint.objects.filter(user=user).values_list("hint", flat=True))
