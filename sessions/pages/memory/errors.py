"""Messages of errors, as the pages show them."""

from __future__ import annotations

from compaction.errors import WorkingMemoryError


def reason_of(error: ValueError) -> str:
    """Return the message of an error. Those of `WorkingMemoryError` begin with the name of an API field."""
    text = str(error)
    return text.removeprefix(f"{error.field}: ") if isinstance(error, WorkingMemoryError) else text
