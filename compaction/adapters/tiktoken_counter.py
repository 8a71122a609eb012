"""Token counts by OpenAI's o200k_base vocabulary, which ships with the project: no network is asked.

The vocabulary takes some 0.6 s and 50 MB to load, so it is loaded when the first text is counted, once a
process. Counts for other vendors' models are estimates, which `meter.Calibration` corrects.
"""

from __future__ import annotations

import base64
import gzip
import threading
from functools import cache
from importlib.resources import files

import tiktoken

#: Splitting pattern of o200k_base (tiktoken_ext/openai_public.py).
_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

#: Texts are counted in pieces of so many characters: merging a run without whitespace takes more than
#: linear time, and the splitting pattern gives up on runs of millions. A cut costs about one token.
_CHUNK = 32_768

#: Counts that a process remembers, some 15 MB: a plan counts again what was pushed, and names by thousands.
_REMEMBERED = 1 << 17

_loading = threading.Lock()

#: By hash and length of a text. The hash has 64 bits and a secret key, so two texts of one length that share
#: it are not to be met, and the texts themselves need not be kept.
_known: dict[tuple[int, int], int] = {}


class TiktokenCounter:
    """Counts tokens with o200k_base. Special tokens in a text count as the plain text that they are."""

    def count(self, text: str) -> int:
        key = (hash(text), len(text))
        tokens = _known.get(key)
        if tokens is None:
            if len(_known) >= _REMEMBERED:
                forget()
            tokens = _known[key] = _count(text)
        return tokens


def forget() -> None:
    """Counts everything anew from here on."""
    _known.clear()


def _count(text: str) -> int:
    encode = _encoding().encode_ordinary
    if len(text) <= _CHUNK:
        return len(encode(text))
    return sum(len(encode(text[start : start + _CHUNK])) for start in range(0, len(text), _CHUNK))


def _encoding() -> tiktoken.Encoding:
    with _loading:  # two threads would both load: `cache` alone does not hold the second one back
        return _load()


@cache
def _load() -> tiktoken.Encoding:
    packed = files("compaction.adapters").joinpath("vocabulary/o200k_base.tiktoken.gz").read_bytes()
    lines = (line.split() for line in gzip.decompress(packed).splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    encoding = tiktoken.Encoding(
        name="o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )
    encoding._mergeable_ranks = {}  # the compiled core has its own copy; this one is 25 MB in each process
    return encoding


@cache
def counter() -> TiktokenCounter:
    """Return the counter of this process, which loads its vocabulary once."""
    return TiktokenCounter()
