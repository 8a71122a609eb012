"""Encode text with OpenAI's o200k_base vocabulary, which is bundled, so that no download is needed.

fastokens returns the same tokens as tiktoken in a sixth of the time. tiktoken encodes where fastokens is
not installed. Loading takes about two seconds and 75 MB (tiktoken: half a second and 50 MB), so each process
loads it on first use.
"""

from __future__ import annotations

import base64
import gzip
import os
import threading
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

#: Splitting pattern of o200k_base (tiktoken_ext/openai_public.py). fastokens has a scanner for it.
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


class Tokenizer(Protocol):
    """Encodes text. Special tokens are plain text, and lone surrogates are replaced."""

    def count(self, text: str) -> int:
        """Return the number of tokens."""

    def encode(self, text: str) -> Sequence[int]:
        """Return the tokens."""


class Fastokens:
    def __init__(self, vocabulary: bytes) -> None:
        # Long texts are encoded in this thread: a process forked after a count has no threads of the library,
        # and would wait for them forever.
        os.environ["FASTOKENS_BPE_THREADS"] = "1"
        from fastokens import Tokenizer as Native

        with TemporaryDirectory() as folder:
            file = Path(folder, "o200k_base.tiktoken")
            file.write_bytes(vocabulary)
            self._encode = Native.from_tiktoken(str(file), _PATTERN, {}).encode_ordinary

    def count(self, text: str) -> int:
        return len(self._encoded(text))

    def encode(self, text: str) -> Sequence[int]:
        ids: Sequence[int] = self._encoded(text).ids
        return ids

    def _encoded(self, text: str) -> Any:
        try:
            return self._encode(text)
        except UnicodeEncodeError:
            return self._encode(_without_surrogates(text))


class Tiktoken:
    def __init__(self, vocabulary: bytes) -> None:
        from tiktoken import Encoding

        lines = (line.split() for line in vocabulary.splitlines())
        ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
        encoding = Encoding(name="o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})
        encoding._mergeable_ranks = {}  # a copy of what the compiled core has, 25 MB
        self._encode = encoding.encode_ordinary

    def count(self, text: str) -> int:
        return len(self._encode(text))

    def encode(self, text: str) -> Sequence[int]:
        return self._encode(text)


_loading = threading.Lock()
_loaded: Tokenizer | None = None


def tokenizer() -> Tokenizer:
    """Return the tokenizer of this process. Loads it the first time, without starting a thread."""
    global _loaded
    if _loaded is None:
        with _loading:
            _loaded = _loaded or (Fastokens if find_spec("fastokens") else Tiktoken)(vocabulary())
    return _loaded


def vocabulary() -> bytes:
    """Return o200k_base in tiktoken's file format."""
    packed = files("compaction.adapters").joinpath("vocabulary/o200k_base.tiktoken.gz").read_bytes()
    return gzip.decompress(packed)


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, as tiktoken does."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
