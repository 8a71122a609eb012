"""Regular expressions that callers write. They run in RE2, whose time is linear in the text."""

from __future__ import annotations

from typing import Any

import re2

#: Memory that one compiled pattern may take (bytes). A pattern that needs more is refused.
_MEMORY = 1 << 20


class BadPattern(ValueError):
    """The pattern is no regular expression of RE2, or too large a one."""


def pattern_compile(pattern: str) -> Any:
    """Raises `BadPattern`, which says what is wrong with it."""
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        [told] = error.args
        raise BadPattern(told.decode(errors="replace") if isinstance(told, bytes) else str(told)) from None
    except UnicodeEncodeError:
        raise BadPattern("no text in UTF-8 has surrogates") from None
