"""Redact the names, ids and labels of reports. Their content is redacted when it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from redaction import Redaction, redact
from telemetry.values import Origin, Report


def report_redact(report: Report, redaction: Redaction) -> Report:
    """Return the report with redacted strings. Zero characters, which Postgres rejects, are replaced."""
    clean: Report = _clean(report, redaction)
    return clean


def _clean(value: Report | Origin, redaction: Redaction) -> Any:
    changes: dict[str, Any] = {}
    for each in fields(value):
        found = getattr(value, each.name)
        if isinstance(found, str):
            changes[each.name] = _text(found, redaction)
        elif isinstance(found, Origin):
            changes[each.name] = _clean(found, redaction)
        elif isinstance(found, Mapping):
            # As one object, because the name of a label may show that its value is a secret.
            clean, _ = redact(dict(found), redaction=redaction)
            changes[each.name] = {_storable(key): _storable(text) for key, text in clean.items()}
    return replace(value, **changes)


def _text(text: str, redaction: Redaction) -> str:
    clean: str = redact(text, redaction=redaction)[0]
    return _storable(clean)


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd")
