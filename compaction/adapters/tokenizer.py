"""Encode text with OpenAI's o200k_base vocabulary, which is bundled, so that no download is needed.

tiktoken loads in half a second and takes 50 MB. fastokens returns the same tokens in a sixth of the time, but
loads in two seconds and takes 75 MB. A process therefore begins with tiktoken, on first use, and replaces it
once it has encoded so much text that fastokens pays off. The web server loads fastokens from the start.
"""

from __future__ import annotations

import gzip
import os
import threading
from binascii import a2b_base64
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
        ranks = {a2b_base64(token): int(rank) for token, rank in lines}
        encoding = Encoding(name="o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})
        encoding._mergeable_ranks = {}  # a copy of what the compiled core has, 25 MB
        self._encode = encoding.encode_ordinary
        self.encoded = 0  #: characters so far

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def encode(self, text: str) -> Sequence[int]:
        self.encoded += len(text)
        return self._encode(text)


#: Characters that tiktoken encodes in about as much time as loading fastokens takes.
_MANY = 20_000_000

_loading = threading.Lock()
_loaded: Fastokens | Tiktoken | None = None


def tokenizer() -> Tokenizer:
    """Return the tokenizer of this process. Loads it the first time, without starting a thread."""
    global _loaded
    if _loaded is None:
        with _loading:
            first = _loaded or Tiktoken(vocabulary())
            _loaded = _loaded or first  # `load_fastokens` may have ended in the meantime
    elif isinstance(_loaded, Tiktoken) and _loaded.encoded > _MANY and _loading.acquire(blocking=False):
        _loaded.encoded = 0  # other threads continue with tiktoken in the meantime
        try:
            load_fastokens()
        finally:
            _loading.release()
    return _loaded


def load_fastokens() -> None:
    """Encode with fastokens from now on, if it is installed."""
    global _loaded
    if find_spec("fastokens"):
        _loaded = Fastokens(vocabulary())


def vocabulary() -> bytes:
    """Return o200k_base in tiktoken's file format."""
    packed = files("compaction.adapters").joinpath("vocabulary/o200k_base.tiktoken.gz").read_bytes()
    return gzip.decompress(packed)


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, as tiktoken does."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
