"""Combining marks: accents and vowel signs that are separate characters and belong to the letter before.

macOS writes file names with them (`U` and a mark instead of `Ü`), and most Indic and Semitic scripts need
them. Python's `\\w` does not match them.
"""

from __future__ import annotations

import unicodedata

#: Blocks of scripts that are in use. The marks of symbols, such as emoji, are not part of words.
_BLOCKS = (range(0x300, 0x2000), range(0x3000, 0x3100), range(0xA600, 0xAC00))


def _ranges() -> str:
    """Return all marks as ranges for a character class of a pattern."""
    is_mark = "".join(
        chr(code) if unicodedata.category(chr(code))[0] == "M" else " " for block in _BLOCKS for code in block
    )
    return "".join(f"{run[0]}-{run[-1]}" for run in is_mark.split())


MARKS = _ranges()
