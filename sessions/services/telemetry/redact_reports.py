"""Redact and shorten the names, ids and labels of reports. Their content is redacted when it is stored.

They are shortened last, because no rule would recognize a secret whose end is cut off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from redaction import Redaction, redact
from sessions.store.text import storable
from telemetry.values import Origin, Report

#: The maximum number of characters by field, of the names and the values of labels, and of the others.
_LONGEST = {
    "session": 150, "line": 60, "agent": 100, "version": 50, "member": 254, "trigger": 30, "text": None,
}  # fmt: skip
_LONGEST_LABEL, _LONGEST_VALUE, _LONGEST_OTHER = 60, 80, 200


def report_redact(report: Report, redaction: Redaction) -> Report:
    """Return the report with redacted and shortened strings.

    Zero characters, which Postgres rejects, are replaced.
    """
    clean: Report = _clean(report, redaction)
    return clean


def _clean(value: Report | Origin, redaction: Redaction) -> Any:
    changes: dict[str, Any] = {}
    for each in fields(value):
        found = getattr(value, each.name)
        if isinstance(found, str):
            clean, _ = redact(found, redaction=redaction)
            changes[each.name] = storable(clean)[: _LONGEST.get(each.name, _LONGEST_OTHER)]
        elif isinstance(found, Origin):
            changes[each.name] = _clean(found, redaction)
        elif isinstance(found, Mapping):
            # As one object, because the name of a label may show that its value is a secret.
            clean, _ = redact(dict(found), redaction=redaction)
            changes[each.name] = {
                storable(key)[:_LONGEST_LABEL]: storable(text)[:_LONGEST_VALUE] for key, text in clean.items()
            }
    return replace(value, **changes)
