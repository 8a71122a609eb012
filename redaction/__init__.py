"""Replace secrets with stable placeholders before anything is stored, counted or hashed.

    redaction = Redaction(key=…, patterns=…)                    # key of the placeholders, custom patterns
    raw, findings = redact_bytes(raw, redaction=redaction)      # JSON bytes; the same object if clean
    value, findings = redact(value, redaction=redaction)        # parsed JSON; the same object if clean

A secret becomes `[redacted:<kind>:<hash>]`. The hash is keyed by project: equal secrets of a project have
equal placeholders, so de-duplication and references keep working, but guesses cannot be verified without the
server's key. Placeholders are never redacted. `docs/reference/redaction.md` lists the detected kinds, the
known limits, and how to add patterns.
"""

from redaction.json_text import redact, redact_bytes
from redaction.placeholders import Finding
from redaction.project import ExtraPattern, InvalidPatternError, Redaction, extra_rules

__all__ = [
    "ExtraPattern",
    "Finding",
    "InvalidPatternError",
    "Redaction",
    "extra_rules",
    "redact",
    "redact_bytes",
]
