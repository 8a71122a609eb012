"""On real transcripts: few messages change, and those stay valid."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from redaction import redact_bytes
from tests.redaction.secrets import KEY

#: Maximum share of changed lines. Public transcripts contain few secrets, so more would be false positives.
MOST_CHANGED = 0.005


@pytest.mark.trajectories
def test_few_lines_of_public_transcripts_change(trajectories: Path) -> None:
    lines = [
        line
        for path in sorted(trajectories.glob("entire-claude-code/**/*.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    if not lines:
        pytest.skip("no logs of this format among the transcripts")
    changed = 0
    for line in lines[::4]:
        redacted, findings = redact_bytes(line, redaction=KEY)
        changed += bool(findings)
        assert redacted is line or orjson.loads(redacted)
    assert changed / len(lines[::4]) < MOST_CHANGED
