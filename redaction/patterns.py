"""Compile user-provided regular expressions. They run in RE2, which takes linear time."""

from __future__ import annotations

from typing import Any

import re2

#: Maximum memory of a compiled pattern (bytes). Patterns that need more are rejected.
_MEMORY = 1 << 20


class BadPattern(ValueError):
    """The pattern is not valid RE2 syntax, or too large."""


def pattern_compile(pattern: str) -> Any:
    """Compile a pattern. Raises `BadPattern` with the reason if it is invalid."""
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        [reason] = error.args
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise BadPattern(text) from None
    except UnicodeEncodeError:
        raise BadPattern("surrogates are not valid UTF-8") from None
