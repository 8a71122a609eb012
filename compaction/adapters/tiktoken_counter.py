"""Count tokens with OpenAI's o200k_base vocabulary, which is bundled, so that no download is needed.

Loading the vocabulary takes about 0.6 s and 50 MB, so each process loads it on first use.
Counts for models of other vendors are estimates, which `compaction.calibration` corrects.
"""

from __future__ import annotations

import base64
import gzip
import threading
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise

import tiktoken

#: Splitting pattern of o200k_base (tiktoken_ext/openai_public.py). The alternatives before the lookahead are
#: one group, because the engine matches a group without lookaheads with one automaton: in 20% less time.
_WORDS = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
    )
)
_PATTERN = rf"(?:{_WORDS})|\s+(?!\S)|\s+"

#: Text is counted in pieces of this many characters, because runs without whitespace take more than linear
#: time and the splitting pattern fails on runs of millions of characters. Each split adds about one token.
_CHUNK = 32_768

#: Number of cached counts per process, about 15 MB. Plans count pushed text and thousands of names
#: repeatedly.
_REMEMBERED = 1 << 17

#: The token of a single line break.
_LINE_BREAK = 198

_loading = threading.Lock()
_loaded: tiktoken.Encoding | None = None

#: Counts by hash and length of the text. The hash is keyed and has 64 bits, so collisions of texts of the
#: same length are practically impossible and the texts need not be stored.
_known: dict[tuple[int, int], int] = {}


class TiktokenCounter:
    """Counts tokens with o200k_base. Special tokens count as plain text."""

    def count(self, text: str) -> int:
        key = (hash(text), len(text))
        tokens = _known.get(key)
        if tokens is None:
            if len(_known) >= _REMEMBERED:
                forget()
            tokens = _known[key] = _count(text)
        return tokens

    def count_lines(self, lines: Sequence[str]) -> list[int]:
        """Return the tokens of each line. Lines begin with a space and end with a letter or digit.

        The vocabulary then never joins the line break between two lines with either of them.
        """
        ids = _encoding().encode_ordinary("\n".join(lines))
        ends = [index for index, token in enumerate(ids) if token == _LINE_BREAK] if lines else []
        if len(ends) + 1 != len(lines):
            return [self.count(line) for line in lines]
        return [end - start - 1 for start, end in pairwise((-1, *ends, len(ids)))]


def forget() -> None:
    """Clear the cache of counts."""
    _known.clear()


def _count(text: str) -> int:
    encode = _encoding().encode_ordinary
    if len(text) <= _CHUNK:
        return len(encode(text))
    return sum(len(encode(text[start : start + _CHUNK])) for start in range(0, len(text), _CHUNK))


def _encoding() -> tiktoken.Encoding:
    global _loaded
    if _loaded is None:
        with _loading:
            _loaded = _loaded or _load()
    return _loaded


def _load() -> tiktoken.Encoding:
    packed = files("compaction.adapters").joinpath("vocabulary/o200k_base.tiktoken.gz").read_bytes()
    lines = (line.split() for line in gzip.decompress(packed).splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    encoding = tiktoken.Encoding(
        name="o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )
    encoding._mergeable_ranks = {}  # the compiled core has its copy; this one would take 25 MB per process
    return encoding


@cache
def counter() -> TiktokenCounter:
    """Return the counter of this process."""
    return TiktokenCounter()
