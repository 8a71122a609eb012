"""As root, the embedded Postgres runs as a user without an account or other processes."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from contextapp.embedded import launch

STATUS = "import sys; print(open('/proc/self/status').read())"


def status_of(folder: Path) -> dict[str, str]:
    options = ("--parent", str(os.getpid()), "--signal", "SIGTERM", "--unprivileged", str(folder))
    command = (sys.executable, launch.__file__, *options, "--", sys.executable, "-c", STATUS)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="requires root on Linux")
def test_the_database_has_a_user_of_its_own_and_one_capability(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    users = []
    for folder in (first, second, first):
        folder.mkdir(exist_ok=True)
        (folder / "PG_VERSION").touch()
        found = status_of(folder)
        user = int(found["Uid"].split()[0])
        users.append(user)
        assert user not in {account.pw_uid for account in pwd.getpwall()}
        assert found["Groups"].strip() == ""
        assert found["NoNewPrivs"].strip() == "1"
        for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(found[name], 16) == 1 << launch.CAP_DAC_OVERRIDE
        assert (folder / "PG_VERSION").stat().st_uid == user
    assert users[0] == users[2] != users[1]
