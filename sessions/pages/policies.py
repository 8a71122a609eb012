"""How pages describe a stored policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from django.utils.text import Truncator

from compaction.policy import Policy
from sessions.pages.terms import preset_meaning

#: Maximum characters of a setting's text.
_MAX_TEXT = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySummary:
    """A policy as a preset and what differs from it. `overrides` are texts such as "target 0.3"."""

    preset: str
    meaning: str
    overrides: Sequence[str]


def policy_summary(stored: Mapping[str, Any]) -> PolicySummary:
    """Return the summary of a policy as sessions and projects store it."""
    preset = str(stored.get("preset", Policy().name))
    names = [field.name for field in fields(Policy) if field.name in stored and field.name != "name"]
    overrides = [f"{name} {_text(stored[name])}" for name in names]
    return PolicySummary(preset=preset, meaning=preset_meaning(preset), overrides=overrides)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return Truncator(value).chars(_MAX_TEXT)
    if isinstance(value, list):
        return ", ".join(item["pattern"] if isinstance(item, dict) else str(item) for item in value) or "none"
    return str(value)
