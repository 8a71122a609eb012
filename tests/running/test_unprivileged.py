"""As root, the embedded Postgres runs as a user without an account, other processes or capabilities."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contextapp.embedded import launch

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="requires root on Linux"),
]


#: Drops a capability (PR_CAPBSET_DROP) and becomes a program, which then does not have it.
_WITHOUT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, int(sys.argv[1]))
os.execv(sys.argv[2], sys.argv[2:])
"""
SETUID, SYS_ADMIN = 7, 21


def run(folders: list[Path], *command: str, without: int | None = None) -> str:
    """Run a command as the owner of the folders and return its output. `without` is a missing capability."""
    less = () if without is None else (sys.executable, "-I", "-S", "-c", _WITHOUT, str(without))
    options = ["--parent", str(os.getpid()), "--signal", "SIGTERM", *(f"--unprivileged={f}" for f in folders)]
    done = subprocess.run(
        (*less, sys.executable, "-I", "-S", launch.__file__, *options, "--", *command),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.stdout


def test_the_database_has_a_user_of_its_own_without_capabilities(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    users = []
    for folder in (first, second, first):
        folder.mkdir(exist_ok=True)
        (folder / "PG_VERSION").touch()
        lines = run([folder], "/bin/cat", "/proc/self/status").splitlines()
        found = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        user = int(found["Uid"].split()[0])
        users.append(user)
        assert user not in {account.pw_uid for account in pwd.getpwall()}
        assert found["Groups"].strip() == ""
        assert found["NoNewPrivs"].strip() == "1"
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(found[name], 16) == 0
        assert (folder / "PG_VERSION").stat().st_uid == user
    assert users[0] == users[2] != users[1]


def test_without_the_right_to_mount_it_may_read_all_folders_but_write_only_its_own(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "postgres").mkdir(parents=True)
    (home / "postgres" / "PG_VERSION").write_text("18")
    home.chmod(0o700)
    script = (
        f"cd {home}; cat postgres/PG_VERSION; echo x > postgres/own; echo x > other; cat /proc/self/status"
    )
    version, _, status = run([home / "postgres"], "/bin/sh", "-c", script, without=SYS_ADMIN).partition(
        "Name:"
    )
    found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert version == "18"
    assert "0" not in found["Uid"].split()
    assert {int(found[name], 16) for name in ("CapPrm", "CapEff", "CapBnd")} == {
        1 << launch.CAP_DAC_READ_SEARCH
    }
    written = sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())
    assert written == ["postgres/PG_VERSION", "postgres/own"]


def test_a_root_that_cannot_change_its_user_becomes_nobody_in_a_namespace(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-U", "true"], check=False).returncode != 0:
        pytest.skip("requires user namespaces")
    folder = tmp_path / "postgres"
    folder.mkdir()
    script = f"id -u; echo x > {folder}/own"
    assert int(run([folder], "/bin/sh", "-c", script, without=SETUID)) == pwd.getpwnam("nobody").pw_uid
    assert (folder / "own").stat().st_uid == os.getuid()


def test_it_reads_its_folders_and_programs_but_nothing_else_in_private_folders(tmp_path: Path) -> None:
    home, programs = tmp_path / "home", tmp_path / "root" / "venv" / "pg" / "pginstall"
    libraries = tmp_path / "root" / "venv" / "pg.libs"
    for folder in (home / "postgres", home / "run" / "postgres", programs / "bin", libraries):
        folder.mkdir(parents=True)
    shutil.copy("/bin/sh", programs / "bin" / "sh")
    shown = ["home/postgres/PG_VERSION", "root/venv/pg/pginstall/share", "root/venv/pg.libs/libpq"]
    for name in (*shown, "home/secret-key", "root/ssh-key"):
        (tmp_path / name).write_text(name)
    for folder in (home, home / "run", tmp_path / "root"):
        folder.chmod(0o700)
    owned = [home / "postgres", home / "run" / "postgres"]
    script = (
        f"cd {tmp_path}; cat home/secret-key root/ssh-key {' '.join(shown)};"
        " echo x > home/run/postgres/socket; echo x > home/run/other; echo x > home/other"
    )
    assert run(owned, str(programs / "bin" / "sh"), "-c", script) == "".join(shown)
    written = sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())
    assert written == ["postgres/PG_VERSION", "run/postgres/socket", "secret-key"]
