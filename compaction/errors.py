"""The errors of the compaction core.

    CompactionError
    ├── FieldError          an invalid value; names the field
    │   ├── PolicyError         an invalid policy or budget
    │   └── WorkingMemoryError  a working memory over its limit, or with an unknown or invalid field
    ├── FormatError         an unknown message format
    └── SummaryError        a model's summary or memory extraction failed; reports the usage
        ├── SummaryUnavailable  overload, rate limit, timeout, dropped connection: may succeed later
        ├── SummaryRejected     the provider rejected the request: key, model, size, credit
        ├── SummaryRefused      the model declined to answer
        ├── SummaryMalformed    the answer does not match the schema
        └── SummaryTooLong      the answer exceeds its cap

Pushed messages never raise: parsing tolerates any content, and `validate` reports violations.
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction.messages import Usage


class CompactionError(Exception):
    """The base class of all errors of the core."""


class FieldError(CompactionError, ValueError):
    """An invalid value. `field` names it, with dots between nested names; `reason` says why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class PolicyError(FieldError):
    """Invalid policy or budget."""


class WorkingMemoryError(FieldError):
    """A working memory over its limit, or with an unknown or invalid field."""


class FormatError(CompactionError, LookupError):
    """Unknown message format."""


class SummaryError(CompactionError):
    """A model call returned no usable answer.

    `calls` is the usage of each answered request; `requests` is the number of all requests sent.
    """

    calls: Sequence[Usage] = ()
    requests: int = 0


class SummaryUnavailable(SummaryError):
    """The provider did not respond in time. `retry_after` is its requested delay in seconds."""

    retry_after: float | None = None


class SummaryRejected(SummaryError):
    """The provider rejected the request; a retry will not help. `status` is the HTTP status."""

    status: int = 0


class SummaryRefused(SummaryError):
    """The model declined to answer."""


class SummaryMalformed(SummaryError):
    """The model's answer does not match the schema."""


class SummaryTooLong(SummaryError):
    """The model's answer exceeds its cap or was cut off."""
