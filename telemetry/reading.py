"""Read the reports of known agents and instrumentations. A new one is a module with `read` and one entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from telemetry import claude_code, codex
from telemetry.genai.spans import read as read_spans
from telemetry.records import LogRecord, Span
from telemetry.values import Report

#: Readers of log records. Each returns None for records of other emitters.
LOG_READERS: tuple[Callable[[LogRecord], Report | None], ...] = (claude_code.read, codex.read)


def log_reports(records: Iterable[LogRecord]) -> list[Report]:
    """Return what the records report, in order of time. Records of unknown emitters are ignored."""
    found: list[Report] = []
    for record in records:
        reports = (read(record) for read in LOG_READERS)
        found.extend(report for report in reports if report is not None)
    return sorted(found, key=lambda report: report.at)


def span_reports(spans: Sequence[Span]) -> list[Report]:
    """Return what the spans report, in order of time. Spans of neither models nor tools are ignored."""
    return sorted(read_spans(spans), key=lambda report: report.at)
