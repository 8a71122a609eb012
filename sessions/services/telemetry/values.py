"""Where telemetry is stored, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pricing.custom import CustomPrice
from redaction import Redaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The project that telemetry is stored in, and the API key that it was sent with.

    `user_id` is the member who created the key.
    """

    project_id: UUID
    key_id: UUID
    redaction: Redaction
    user_id: int | None = None
    prices: Sequence[CustomPrice] = ()
    has_upkeep: bool = False


@dataclass(slots=True)
class Stored:
    """The number of records that could not be stored, and the reason for the last one."""

    rejected: int = 0
    reason: str = ""

    def reject(self, reason: str) -> None:
        self.rejected += 1
        self.reason = reason
