"""Provider rules shared by several dialects: every tool call has its result, in the right place.

Rules of one provider are in the package of its dialect. Rules A1 to A12 are Anthropic's, C1 to C5 are
OpenAI's (Chat Completions).
"""

from __future__ import annotations

from compaction.invariants.pairs import safe_cuts
from compaction.invariants.violations import Violation

__all__ = ["Violation", "safe_cuts"]
