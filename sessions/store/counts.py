"""Compression of the token counts of a turn.

An array in Postgres has a header of 24 bytes, as much as the counts of six components.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence


def counts_pack(counts: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(counts)}I", *counts)


def counts_unpack(data: bytes | memoryview) -> tuple[int, ...]:
    """Return the counts that `counts_pack` packed."""
    return struct.unpack(f"<{len(data) // 4}I", data)
