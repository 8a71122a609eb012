"""`manage.py` without a database fails immediately with a one-line message."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

START_IT = "Start it with `make run`, or set CONTEXTAPP_HOME and DATABASE_URL as for the running instance."
IN_URL = "the database in DATABASE_URL does not accept connections."


@pytest.mark.processes
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", f"contextapp is not running in HOME. {START_IT}\n"),
        ("postgres://x:secret@127.0.0.1:1/x", f"contextapp is not running: {IN_URL}\n"),
    ],
)
def test_a_command_without_a_database_fails_with_one_line(url: str, message: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    environment = os.environ | {"CONTEXTAPP_HOME": str(home), "DATABASE_URL": url}
    environment.pop("CONTEXTAPP_DB_POOL", None)
    environment["DJANGO_SETTINGS_MODULE"] = "contextapp.settings"
    command = [sys.executable, "manage.py", "keys", "--project", "alpha", "list"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == message.replace("HOME.", f"{home}.")
