"""Redaction at the door: secrets become stable placeholders before anything is stored, counted or hashed.

    key = redaction_of(project)                     # the key of its placeholders, and its own patterns
    raw, findings = redact_bytes(raw, key=key)      # JSON bytes of one message; the same object when clean
    value, findings = redact(value, key=key)        # parsed JSON; the same object when clean

A secret becomes `[redacted:<kind>:<hash>]`. The hash is keyed by project, so that equal secrets of a project
have equal placeholders (de-duplication and references go on working) and nobody without the server's key
can test a guess against it. Text that is redacted already is left alone. `docs/redaction.md` lists the kinds,
what is deliberately let through, and how to add patterns.
"""

from sessions.redaction.extra import ExtraPattern, InvalidPatternError, extra_rules
from sessions.redaction.json_text import redact, redact_bytes
from sessions.redaction.placeholders import Finding, redaction_key
from sessions.redaction.project import Redaction, redaction_for, redaction_of

__all__ = [
    "ExtraPattern",
    "Finding",
    "InvalidPatternError",
    "Redaction",
    "extra_rules",
    "redact",
    "redact_bytes",
    "redaction_for",
    "redaction_key",
    "redaction_of",
]
