"""The token counter of this process: its vocabulary is loaded once."""

from __future__ import annotations

from functools import cache

from compaction.adapters.tiktoken_counter import TiktokenCounter


@cache
def counter() -> TiktokenCounter:
    return TiktokenCounter()
