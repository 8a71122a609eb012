"""The log of the sample session, which gives new users something to look at."""

from __future__ import annotations

import gzip
from pathlib import Path

from importers.base import LogFile

_NAME = "sample-session.jsonl"


def sample_log() -> LogFile:
    """Return a fictional coding task of about fifty turns, in Claude Code's log format."""
    packed = Path(__file__).with_name(f"{_NAME}.gz").read_bytes()
    return LogFile(name=_NAME, data=gzip.decompress(packed))
