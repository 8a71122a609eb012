"""Fixtures that every test may ask for."""

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def trajectories() -> Path:
    """The folder of real transcripts; they are not part of the repository."""
    default = _REPOSITORY.parent / "shared" / "data" / "trajectories"
    folder = Path(os.environ.get("CONTEXTAPP_TRAJECTORIES", default))
    if not folder.is_dir():
        pytest.skip(f"no transcripts at {folder}; set CONTEXTAPP_TRAJECTORIES")
    return folder
