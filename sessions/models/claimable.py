"""The columns of a row that workers claim."""

from __future__ import annotations

from django.db import models


class Claimable(models.Model):
    """A row that one worker at a time may handle; `sessions/services/claims.py` describes the protocol."""

    # Number of claims so far; the number of a claim identifies it.
    attempts = models.PositiveIntegerField(default=0)
    # The row cannot be claimed before this time: the end of the worker's lease, or of a pause between
    # attempts.
    lease_until = models.DateTimeField(null=True)

    class Meta:
        abstract = True
