"""The redaction settings of a project."""

from __future__ import annotations

from dataclasses import dataclass

from redaction.extra import ExtraPattern, extra_rules
from redaction.spans import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """The key and the custom patterns of a project. Picklable, for use in other processes."""

    key: bytes
    patterns: tuple[ExtraPattern, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        return extra_rules(self.patterns)
