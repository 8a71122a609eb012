"""Remove invisible characters that interrupt tokens: zero-width, soft hyphens, and the NULs of UTF-16."""

from __future__ import annotations

import re

#: The characters, and their escapes in JSON within a text.
_ESCAPED = r"\\u(?:200[b-dB-D]|2060|[fF][eE][fF][fF]|00[aA][dD]|0000)"
_INVISIBLE = re.compile(
    rf"(?:[\u200b-\u200d\u2060\ufeff\u00ad\0]|\\*{_ESCAPED})+(?=[ -~])",
)

#: Matches raw JSON with such a character before a word (RE2, Latin-1).
INTERRUPTED = rf"(?:\xe2\x80[\x8b-\x8d]|\xe2\x81\xa0|\xef\xbb\xbf|\xc2\xad|{_ESCAPED})\w"


def visible(text: str) -> str:
    """Return the text without invisible characters before ASCII characters."""
    return _INVISIBLE.sub("", text)
