"""The errors of the compaction core.

    CompactionError
    ├── PolicyError         a policy or budget that cannot be: names the field
    ├── FormatError         a message format that nobody registered
    ├── WorkingMemoryError  a working memory over its limit, or with a field that it does not have
    └── SummaryError        a model that sums a session up (in a recap, in memory) gave no answer that is
        │                   of use: says what was spent on it
        ├── SummaryUnavailable  overload, rate limit, time-out, cut connection: later it may work
        ├── SummaryRejected     the provider refuses the request itself: key, model, size, credit
        ├── SummaryRefused      the model declines to answer
        ├── SummaryMalformed    the answer is not what was asked for
        └── SummaryTooLong      the answer is over its cap

What agents push never raises: parsing tolerates it, and `validate` names what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction.messages import Usage


class CompactionError(Exception):
    """Root of the tree."""


class PolicyError(CompactionError, ValueError):
    """A policy or budget that cannot be. `field` names the setting, dots for nested ones."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class FormatError(CompactionError, LookupError):
    """A message format that nobody registered."""


class WorkingMemoryError(CompactionError, ValueError):
    """A working memory over its limit, or with a field that it does not have. `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class SummaryError(CompactionError):
    """A model gave no answer that is of use. `calls` is the usage of each request that was answered all the
    same, `requests` counts every one that was sent."""

    calls: Sequence[Usage] = ()
    requests: int = 0


class SummaryUnavailable(SummaryError):
    """The provider did not answer in time, however often it was asked. `retry_after` are the seconds that
    it asks to wait, where it does."""

    retry_after: float | None = None


class SummaryRejected(SummaryError):
    """The provider refuses the request: no retry will help. `status` is the HTTP status."""

    status: int = 0


class SummaryRefused(SummaryError):
    """The model declined to answer."""


class SummaryMalformed(SummaryError):
    """The model's answer is not what was asked for."""


class SummaryTooLong(SummaryError):
    """The model's answer is over its cap, or was cut off."""
