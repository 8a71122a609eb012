"""The inputs of one project's redaction: the key of its placeholders, and its custom patterns."""

from __future__ import annotations

from dataclasses import dataclass

from redaction.extra import ExtraPattern, extra_rules
from redaction.spans import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """The key and the custom patterns of a project. Plain values, so that they can cross processes."""

    key: bytes
    patterns: tuple[ExtraPattern, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        return extra_rules(self.patterns)
