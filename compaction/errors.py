"""The errors of the compaction core.

    CompactionError
    ├── PolicyError         a policy or budget that cannot be: names the field
    ├── FormatError         a message format that nobody registered
    └── WorkingMemoryError  a working memory over its limit, or with a field that it does not have

What agents push never raises: parsing tolerates it, and `validate` names what is wrong with it.
"""

from __future__ import annotations


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
