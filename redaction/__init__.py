"""Redaction at the door: secrets become stable placeholders before anything is stored, counted or hashed.

    key = Redaction(key=…, patterns=…)              # the key of the placeholders, and custom patterns
    raw, findings = redact_bytes(raw, key=key)      # JSON bytes of one message; the same object when clean
    value, findings = redact(value, key=key)        # parsed JSON; the same object when clean

A secret becomes `[redacted:<kind>:<hash>]`. The hash is keyed by project, so that equal secrets of a project
have equal placeholders (de-duplication and references go on working) and nobody without the server's key
can test a guess against it. Text that is redacted already is left alone. `docs/reference/redaction.md`
lists the kinds, what is deliberately not redacted, and how to add patterns.
"""

from redaction.extra import ExtraPattern, InvalidPatternError, extra_rules
from redaction.json_text import redact, redact_bytes
from redaction.placeholders import Finding
from redaction.project import Redaction

__all__ = [
    "ExtraPattern",
    "Finding",
    "InvalidPatternError",
    "Redaction",
    "extra_rules",
    "redact",
    "redact_bytes",
]
