"""Compression of the token counts of a turn.

An array in Postgres has a header of 24 bytes, as much as the counts of six components.
"""

from __future__ import annotations

import struct

from compaction.sizes.breakdown import TokenBreakdown


def breakdown_pack(breakdown: TokenBreakdown) -> bytes:
    counts = breakdown.counts
    return struct.pack(f"<{len(counts)}I", *counts)


def breakdown_unpack(data: bytes | memoryview) -> TokenBreakdown:
    """Return the breakdown that `breakdown_pack` packed."""
    return TokenBreakdown.from_counts(struct.unpack(f"<{len(data) // 4}I", data))
