"""Real agent transcripts, which are not part of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def trajectories() -> Path:
    """Return the folder of real transcripts; skip the test if there is none."""
    default = _REPOSITORY.parent / "shared" / "data" / "trajectories"
    folder = Path(os.environ.get("CONTEXTAPP_TRAJECTORIES", default))
    if not folder.is_dir():
        pytest.skip(f"no transcripts at {folder}; set CONTEXTAPP_TRAJECTORIES")
    return folder
