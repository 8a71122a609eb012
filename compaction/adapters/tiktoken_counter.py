"""Count tokens with OpenAI's o200k_base vocabulary.

Counts for models of other vendors are estimates, which `compaction.sizes.calibration` corrects.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from compaction.adapters.tokenizer import tokenizer
from compaction.text_cache import once_per_text

#: Text is counted in pieces of this many characters, because runs without whitespace take more than linear
#: time and the splitting pattern fails on runs of millions of characters. Each split adds about one token.
_CHUNK = 32_768

#: Number of cached counts per process, about 15 MB. Plans count pushed text and thousands of names
#: repeatedly.
_REMEMBERED = 1 << 17

#: The token of a single line break.
_LINE_BREAK = 198


class TiktokenCounter:
    """Counts tokens with o200k_base. Special tokens count as plain text."""

    def count(self, text: str) -> int:
        return _count(text)

    def count_lines(self, lines: Sequence[str]) -> list[int]:
        """Return the tokens of each line. Lines begin with a space and end with a letter or digit.

        The vocabulary then never joins the line break between two lines with either of them.
        """
        ids = tokenizer().encode("\n".join(lines))
        ends = [index for index, token in enumerate(ids) if token == _LINE_BREAK] if lines else []
        if len(ends) + 1 != len(lines):
            return [self.count(line) for line in lines]
        return [end - start - 1 for start, end in pairwise((-1, *ends, len(ids)))]


@once_per_text(_REMEMBERED)
def _count(text: str) -> int:
    count = tokenizer().count
    if len(text) <= _CHUNK:
        return count(text)
    return sum(count(text[start : start + _CHUNK]) for start in range(0, len(text), _CHUNK))


@cache
def counter() -> TiktokenCounter:
    """Return the counter of this process."""
    return TiktokenCounter()
