"""Runs of tools, which Claude Code and Codex report with the same attributes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from telemetry.attributes import is_true, milliseconds, text
from telemetry.values import Origin, ToolRunReport


def tool_run(values: Mapping[str, Any], call_id: str, origin: Origin, at: datetime) -> ToolRunReport | None:
    """Return the run of a tool, or None if its call or its duration is not reported."""
    duration = milliseconds(values, "duration_ms")
    if not call_id or duration is None:
        return None
    return ToolRunReport(
        origin=origin,
        at=at,
        call_id=call_id,
        name=text(values, "tool_name"),
        duration_ms=duration,
        is_error="success" in values and not is_true(values["success"]),
    )
