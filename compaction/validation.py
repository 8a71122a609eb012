"""Validate a prompt against the rules of its provider."""

from __future__ import annotations

from collections.abc import Sequence

from compaction import dialects
from compaction.capabilities import Capabilities
from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON

_UNKNOWN_MODEL = Capabilities()


def validate(
    messages: Sequence[JSON],
    format: str,
    *,
    system: JSON = None,
    tools: JSON = None,
    capabilities: Capabilities = _UNKNOWN_MODEL,
    edited: range = range(0),
) -> tuple[Violation, ...]:
    """Return every violation, ordered by position; empty if the provider accepts the messages.

    `edited` are the indices of the messages that already existed when an earlier message was last edited;
    rule A11 requires this information. Raises `FormatError` for an unknown dialect.
    """
    dialect = dialects.get_dialect(format)
    subject = Subject(
        items=messages,
        messages=dialects.parse(messages, format=format),
        capabilities=capabilities,
        system=system,
        tools=tools,
        edited=edited,
    )
    return tuple(sorted(dialect.violations(subject), key=lambda violation: violation.position))
