"""The session that ships with the product, so that nobody's first page is empty."""

from __future__ import annotations

import gzip
from pathlib import Path

from importers.base import LogFile

_NAME = "sample-session.jsonl"


def sample_log() -> LogFile:
    """A made-up coding task of some fifty turns, in Claude Code's log format. `make_sample` wrote it."""
    packed = Path(__file__).with_name(f"{_NAME}.gz").read_bytes()
    return LogFile(name=_NAME, data=gzip.decompress(packed))
